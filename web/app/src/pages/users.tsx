import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useForm, usePages, useRead, useSession } from "shared/hooks.ts";
import { deviceZone, timeZones, wordOf } from "shared/language.ts";
import { LanguageChoice } from "shared/language-choice.tsx";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { Ago, ConfirmButton, Empty, Field, List, Problem, Skeleton, Tabs, Title, Total } from "shared/ui.tsx";
import { Orders } from "../orders.tsx";
import { OwnData } from "../own-data.tsx";
import { Avatar, UserLink } from "../people.tsx";
import { PostCard } from "../posts.tsx";
import { endPushes, PushSettings, translatePushes } from "../push.tsx";
import { CollectButton, FollowButton, Followers, KindButtons, LikeButton } from "../reactions.tsx";
import { ReportButton } from "../report.tsx";
import { t } from "../texts.ts";
import type { Comment, Review } from "../types.ts";
import { useWritten } from "../written.ts";
import { OwnShops } from "./own-shops.tsx";

const OWN_TABS = ["posts", "likes", "collects", "orders", "shops"] as const;

export function Profile({ id, tab }: { id: string; tab: string | null }) {
  const session = useSession();
  const {
    data: user,
    error,
    reload,
    set,
  } = useRead(`user ${id}`, (signal) => plaza.get("/users/{user_id}", { path: { user_id: id }, signal }));
  const isOwn = session?.user.id === id;
  const shown = isOwn ? (tab ?? "posts") : "posts";
  if (user === undefined) {
    return (
      <>
        <Title text={t.profile.title} />
        {error === undefined ? <Skeleton rows={2} /> : <Problem error={error} retry={reload} />}
      </>
    );
  }
  const isBlocked = user.mine?.blocked === true; // an older API does not say it
  const setBlocked = (blocked: boolean) => {
    set({ ...user, mine: { following: false, blocked } }); // a block ends the follow
    reload();
  };
  return (
    <>
      <section class="profile">
        <Avatar user={user} large />
        <div>
          <Title
            text={user.nickname}
            actions={
              isOwn ? (
                <a class="button small" href="#/settings">
                  {t.profile.settings}
                </a>
              ) : (
                !isBlocked && <FollowButton user={user} name={user.nickname} />
              )
            }
          />
          <ul class="totals">
            <li>
              <a href={`#/users/${id}/followers`}>
                <Followers user={user} />
              </a>
            </li>
            <li>
              <a href={`#/users/${id}/following`}>
                <Total of={user.following} word={t.total.following} />
              </a>
            </li>
            <li>
              <Total of={user.posts} word={t.total.post} />
            </li>
            <li>
              <Total of={user.likes_received} word={t.total.likeReceived} />
            </li>
          </ul>
          {session !== null && !isOwn && (
            <p class="buttons">
              <BlockButton userId={id} isBlocked={isBlocked} setBlocked={setBlocked} />
              <ReportButton target={{ type: "user", id }} ownerId={id} />
            </p>
          )}
        </div>
      </section>
      {isOwn && (
        <Tabs
          label={t.profile.yours}
          tabs={OWN_TABS.map((value) => ({ label: t.profile[value], value }))}
          value={shown}
          href={(tab) => `#/users/${id}?tab=${tab}`}
        />
      )}
      {shown === "posts" && <Posts userId={id} isOwn={isOwn} />}
      {shown === "likes" && <Reacted path="/users/me/likes" none={t.profile.noLikes} key="likes" />}
      {shown === "collects" && <Reacted path="/users/me/collects" none={t.profile.noCollects} key="collects" />}
      {shown === "orders" && <Orders />}
      {shown === "shops" && <OwnShops />}
    </>
  );
}

interface BlockProps {
  userId: string;
  isBlocked: boolean;
  setBlocked: (blocked: boolean) => void;
}

/** Blocks a user, or ends the block. */
function BlockButton({ userId, isBlocked, setBlocked }: BlockProps) {
  const path = { user_id: userId };
  const set = (blocks: boolean) => {
    const send = () =>
      blocks ? plaza.put("/users/{user_id}/blocks/me", { path }) : plaza.delete("/users/{user_id}/blocks/me", { path });
    withSession(send).then((reply) => setBlocked(reply.blocked), sayRefusal);
  };
  return (
    <ConfirmButton
      label={isBlocked ? t.profile.unblock : t.profile.block}
      confirm={isBlocked ? undefined : t.profile.reallyBlock}
      act={() => set(!isBlocked)}
      class={isBlocked ? "small" : "small quiet"}
    />
  );
}

/** The button of a listed user, who stays in the list when the block has ended. */
function ListedBlock({ userId }: { userId: string }) {
  const [isBlocked, setBlocked] = useState(true);
  return <BlockButton userId={userId} isBlocked={isBlocked} setBlocked={setBlocked} />;
}

/** The users whom the caller blocks. */
export function Blocks() {
  const blocks = usePages("/users/me/blocks");
  return (
    <>
      <Title text={t.profile.blocked} />
      <List
        class="list people"
        of={blocks}
        empty={
          <Empty icon="person" title={t.profile.noBlocks}>
            <p>{t.profile.noBlocksText}</p>
          </Empty>
        }
      >
        {({ user }) => (
          <>
            <UserLink user={user} />
            <ListedBlock userId={user.id} />
          </>
        )}
      </List>
    </>
  );
}

function Posts({ userId, isOwn }: { userId: string; isOwn: boolean }) {
  const read = usePages("/users/{user_id}/posts", { path: { user_id: userId } });
  const posts = useWritten(read, isOwn);
  const empty = (
    <Empty icon="pen" title={t.profile.noPosts}>
      {isOwn && (
        <a class="button primary" href="#/write">
          {t.profile.writeFirst}
        </a>
      )}
    </Empty>
  );
  return (
    <List of={posts} empty={empty}>
      {(post) => <PostCard post={post} />}
    </List>
  );
}

/** The posts, comments and reviews that the caller likes or collects, for the caller only. */
function Reacted({ path, none }: { path: "/users/me/likes" | "/users/me/collects"; none: string }) {
  const reacted = usePages(path, { query: { expand: "target" } });
  return (
    <List
      of={reacted}
      empty={
        <Empty icon="bookmark" title={none}>
          <p>{t.profile.onlyYou}</p>
        </Empty>
      }
    >
      {({ post, comment, review, type }) => {
        if (post) return <PostCard post={post} />;
        if (comment) return <Remark of={comment} href={`#/posts/${comment.post_id}`} about={t.profile.commentOn} />;
        if (review) return <Remark of={review} href={`#/shops/${review.shop_id}`} about={t.profile.reviewOf} />;
        return <p class="card fine">{wordOf(t.profile.gone, type)}</p>;
      }}
    </List>
  );
}

/** A comment or a review that the caller likes or collects, with a link to where it is. */
function Remark({ of, href, about }: { of: Comment | Review; href: string; about: string }) {
  const type = "post_id" in of ? "comment" : "review";
  return (
    <article class="card post">
      <UserLink user={of.author} note={<Ago at={of.created_at} />} />
      <p class="body clamp">{of.body}</p>
      <div class="actions">
        <LikeButton type={type} target={of} />
        <CollectButton type={type} target={of} />
        <KindButtons type={type} target={of} />
        <a class="fine" href={href}>
          {about}
        </a>
      </div>
    </article>
  );
}

export function UserList({ id, of }: { id: string; of: "followers" | "following" }) {
  const path = { user_id: id };
  const users = usePages(`/users/{user_id}/${of}`, { path });
  const { data: user } = useRead(`user ${id}`, (signal) => plaza.get("/users/{user_id}", { path, signal }));
  return (
    <>
      <Title text={of === "followers" ? t.profile.followers : t.following} />
      {user && (
        <p class="fine">
          <a href={`#/users/${id}`}>{user.nickname}</a>
        </p>
      )}
      <List class="list people" of={users} empty={<Empty icon="person" title={t.profile.noUsers} />}>
        {(item) => (
          <>
            <UserLink user={item.user} />
            <FollowButton user={followable(item)} name={item.user.nickname} />
          </>
        )}
      </List>
    </>
  );
}

const followables = new WeakMap<object, { id: string; mine: Schemas["UserViewerState"] | null }>();

/** Returns the user of a list's item with the caller's follow; the same object for the same item. */
function followable(item: Schemas["FollowListItem"]) {
  const followable = followables.get(item) ?? { id: item.user.id, mine: item.mine };
  followables.set(item, followable);
  return followable;
}

export function Settings() {
  const { data: profile, error, reload, set } = useRead("settings", (signal) => plaza.get("/users/me", { signal }));
  const form = useForm(async (data) => {
    const avatar = String(data.get("avatar")).trim();
    const [nickname, time_zone] = [String(data.get("nickname")), String(data.get("time_zone"))];
    const body = { nickname, time_zone, avatar: avatar === "" ? null : avatar };
    const ifMatch = profile && plaza.tagOf(profile);
    const changed = await withSession(() => plaza.patch("/users/me", { body, ifMatch }));
    set(changed);
    say(t.saved);
    go(`/users/${changed.id}`);
  });
  const zone = deviceZone();
  const takeZone = () => {
    const field = document.querySelector<HTMLInputElement>('input[name="time_zone"]');
    if (field === null) return;
    field.value = zone;
    field.focus();
  };
  const signOut = async () => {
    try {
      await endPushes().catch(() => undefined);
      await plaza.signOut();
    } catch {
      say(t.settings.signedOutHere);
    }
    go("/");
  };
  return (
    <>
      <Title text={t.settings.title} />
      {profile === undefined ? (
        error === undefined ? (
          <Skeleton rows={1} />
        ) : (
          <Problem error={error} retry={reload} />
        )
      ) : (
        <form noValidate onSubmit={form.submit}>
          <Field
            form={form}
            name="nickname"
            label={t.settings.name}
            defaultValue={profile.nickname}
            autocomplete="nickname"
          />
          <Field
            form={form}
            name="avatar"
            label={t.settings.picture}
            type="url"
            defaultValue={profile.avatar ?? ""}
            help={t.imageHelp}
          />
          <Field
            form={form}
            name="time_zone"
            label={t.settings.zone}
            defaultValue={profile.time_zone}
            help={t.settings.zoneHelp}
            options={timeZones()}
          />
          {zone !== profile.time_zone && (
            <button type="button" class="small" onClick={takeZone}>
              {t.settings.useZone(zone)}
            </button>
          )}
          <Problem error={form.problem} />
          <button type="submit" class="primary" disabled={form.isSending}>
            {t.save}
          </button>
        </form>
      )}
      <LanguageChoice after={translatePushes} />
      <PushSettings />
      <OwnData />
      <p class="section">
        <a class="button quiet" href="#/blocks">
          {t.profile.blocked}
        </a>
        <button type="button" class="quiet" onClick={() => void signOut()}>
          {t.settings.signOut}
        </button>
      </p>
    </>
  );
}
