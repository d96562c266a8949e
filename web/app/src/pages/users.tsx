import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useForm, usePages, useRead, useSession } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { ConfirmButton, Empty, Field, List, Problem, Skeleton, Tabs, Title, Total } from "shared/ui.tsx";
import { Orders } from "../orders.tsx";
import { Avatar, UserLink } from "../people.tsx";
import { PostCard } from "../posts.tsx";
import { endPushes, PushSettings } from "../push.tsx";
import { FollowButton, Followers } from "../reactions.tsx";
import { ReportButton } from "../report.tsx";
import { useWritten } from "../written.ts";
import { OwnShops } from "./own-shops.tsx";

const OWN_TABS = [
  { label: "Posts", value: "posts" },
  { label: "Likes", value: "likes" },
  { label: "Collects", value: "collects" },
  { label: "Orders", value: "orders" },
  { label: "Shops", value: "shops" },
];

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
        <Title text="Profile" />
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
                  Settings
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
                <Total of={user.following} singular="following" plural="following" />
              </a>
            </li>
            <li>
              <Total of={user.posts} singular="post" plural="posts" />
            </li>
            <li>
              <Total of={user.likes_received} singular="like received" plural="likes received" />
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
      {isOwn && <Tabs label="Your things" tabs={OWN_TABS} value={shown} href={(tab) => `#/users/${id}?tab=${tab}`} />}
      {shown === "posts" && <Posts userId={id} isOwn={isOwn} />}
      {shown === "likes" && <Reacted path="/users/me/likes" what="like" key="likes" />}
      {shown === "collects" && <Reacted path="/users/me/collects" what="collect" key="collects" />}
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
      label={isBlocked ? "Unblock" : "Block"}
      confirm={isBlocked ? undefined : "Really block?"}
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
      <Title text="Blocked users" />
      <List
        class="list people"
        of={blocks}
        empty={
          <Empty icon="person" title="You block no users">
            <p>Blocked users cannot follow you or comment on your posts.</p>
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
    <Empty icon="pen" title="No posts yet">
      {isOwn && (
        <a class="button primary" href="#/write">
          Write the first one
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
function Reacted({ path, what }: { path: "/users/me/likes" | "/users/me/collects"; what: string }) {
  const reacted = usePages(path, { query: { expand: "post" } });
  return (
    <List
      of={reacted}
      empty={
        <Empty icon="bookmark" title={`You ${what} nothing yet`}>
          <p>Only you see this list.</p>
        </Empty>
      }
    >
      {({ post, type, id }) =>
        post ? (
          <PostCard post={post} />
        ) : (
          <p class="card fine">{type === "post" ? "A deleted post" : `A ${type}, ${id}`}</p>
        )
      }
    </List>
  );
}

export function UserList({ id, of }: { id: string; of: "followers" | "following" }) {
  const path = { user_id: id };
  const users = usePages(`/users/{user_id}/${of}`, { path });
  const { data: user } = useRead(`user ${id}`, (signal) => plaza.get("/users/{user_id}", { path, signal }));
  return (
    <>
      <Title text={of === "followers" ? "Followers" : "Following"} />
      {user && (
        <p class="fine">
          <a href={`#/users/${id}`}>{user.nickname}</a>
        </p>
      )}
      <List class="list people" of={users} empty={<Empty icon="person" title="No users yet" />}>
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
  const { data: profile, error, reload } = useRead("settings", (signal) => plaza.get("/users/me", { signal }));
  const form = useForm(async (data) => {
    const avatar = String(data.get("avatar")).trim();
    const [nickname, time_zone] = [String(data.get("nickname")), String(data.get("time_zone"))];
    const body = { nickname, time_zone, avatar: avatar === "" ? null : avatar };
    const changed = await withSession(() => plaza.patch("/users/me", { body }));
    say("Saved.");
    go(`/users/${changed.id}`);
  });
  const signOut = async () => {
    try {
      await endPushes().catch(() => undefined);
      await plaza.signOut();
    } catch {
      say("Signed out here. Plaza could not be reached to end the session there.");
    }
    go("/");
  };
  return (
    <>
      <Title text="Settings" />
      {profile === undefined ? (
        error === undefined ? (
          <Skeleton rows={1} />
        ) : (
          <Problem error={error} retry={reload} />
        )
      ) : (
        <form noValidate onSubmit={form.submit}>
          <Field form={form} name="nickname" label="Name" defaultValue={profile.nickname} autocomplete="nickname" />
          <Field
            form={form}
            name="avatar"
            label="Picture"
            type="url"
            defaultValue={profile.avatar ?? ""}
            help="An https address; may be empty."
          />
          <Field
            form={form}
            name="time_zone"
            label="Time zone"
            defaultValue={profile.time_zone}
            help="It decides when a day begins for check-ins: Europe/Berlin."
          />
          <Problem error={form.problem} />
          <button type="submit" class="primary" disabled={form.isSending}>
            Save
          </button>
        </form>
      )}
      <PushSettings />
      <p class="section">
        <a class="button quiet" href="#/blocks">
          Blocked users
        </a>
        <button type="button" class="quiet" onClick={() => void signOut()}>
          Sign out
        </button>
      </p>
    </>
  );
}
