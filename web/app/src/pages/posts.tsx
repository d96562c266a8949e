import { useState } from "preact/hooks";
import { useDraft } from "shared/drafts.ts";
import { type Form, useForm, usePages, useRead, useSession } from "shared/hooks.ts";
import { fill } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { Ago, ConfirmButton, Empty, Field, List, Problem, Skeleton, Title } from "shared/ui.tsx";
import { Avatar, UserLink } from "../people.tsx";
import { Images } from "../posts.tsx";
import { CollectButton, KindButtons, LikeButton } from "../reactions.tsx";
import { ReportButton } from "../report.tsx";
import { t } from "../texts.ts";
import type { Comment, Post } from "../types.ts";
import { dropWritten, keepWritten } from "../written.ts";

const COMMENT_ORDERS = ["latest", "earliest"] as const;

export function PostPage({ id }: { id: string }) {
  const path = { post_id: id };
  const {
    data: post,
    error,
    reload,
    set,
  } = useRead(`post ${id}`, (signal) => plaza.get("/posts/{post_id}", { path, signal }));
  const session = useSession();
  const [shown, setShown] = useState<"comments" | "likers">("comments");
  const [isEdited, setEdited] = useState(false);
  if (post === undefined) {
    return (
      <>
        <Title text={t.post.title} />
        {error === undefined ? <Skeleton rows={1} /> : <Problem error={error} retry={reload} />}
      </>
    );
  }
  const first = post.likers?.[0];
  const isOwn = session?.user.id === post.author.id;
  const leave = () => {
    dropWritten(id);
    go("/");
  };
  if (isEdited) {
    const save = (changed: Post) => {
      set({ ...post, ...changed });
      keepWritten(changed);
      setEdited(false);
    };
    return <Edit post={post} save={save} cancel={() => setEdited(false)} />;
  }
  return (
    <>
      <article class="post whole">
        <UserLink user={post.author} note={<Dates post={post} />} />
        <Title text={post.title || t.post.untitled} />
        {post.hidden && <p class="note problem">{t.post.hidden}</p>}
        <p class="body">{post.body}</p>
        <Images of={post.images} />
        <div class="actions">
          <LikeButton type="post" target={post} />
          <CollectButton type="post" target={post} />
          <KindButtons type="post" target={post} />
          {post.viewers !== null && <p class="fine">{t.post.viewers(post.viewers)}</p>}
          <ReportButton target={{ type: "post", id }} ownerId={post.author.id} />
          {isOwn && (
            <>
              <button type="button" class="small quiet" onClick={() => setEdited(true)}>
                {t.post.edit}
              </button>
              <Delete
                confirm={t.post.deletePost}
                remove={() => plaza.delete("/posts/{post_id}", { path })}
                after={leave}
              />
            </>
          )}
        </div>
        {first !== undefined && (
          <p class="liked-by">
            <span class="stack">
              {post.likers?.map((user) => (
                <Avatar key={user.id} user={user} />
              ))}
            </span>
            <span class="fine">{t.post.firstLiked(first.nickname)}</span>
          </p>
        )}
      </article>
      <div class="tabs" role="group" aria-label={t.post.about}>
        <button type="button" aria-pressed={shown === "comments"} onClick={() => setShown("comments")}>
          {t.comments}
        </button>
        <button type="button" aria-pressed={shown === "likers"} onClick={() => setShown("likers")}>
          {t.post.likers}
        </button>
      </div>
      {shown === "comments" ? <Comments postId={id} /> : <Likers postId={id} />}
    </>
  );
}

function Dates({ post }: { post: Post }) {
  return (
    <>
      <Ago at={post.created_at} />
      {post.edited_at !== null && fill(t.post.edited, { time: <Ago key="edited" at={post.edited_at} /> })}
    </>
  );
}

/** The form in which an author changes a post. */
function Edit({ post, save, cancel }: { post: Post; save: (post: Post) => void; cancel: () => void }) {
  const draft = useDraft(`edit of post ${post.id}`);
  const discard = () => {
    draft.clear();
    cancel();
  };
  const form = useForm(async (data) => {
    const path = { post_id: post.id };
    const body = readPost(data, post.images.slice(1));
    const ifMatch = plaza.tagOf(post);
    save(await withSession(() => plaza.patch("/posts/{post_id}", { path, body, ifMatch })));
    draft.clear();
    say(t.post.changed);
  });
  return (
    <>
      <Title text={t.post.editTitle} />
      <form noValidate onSubmit={form.submit} {...draft.form}>
        <PostFields form={form} rows={8} post={post} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {t.save}
        </button>{" "}
        <button type="button" class="quiet" onClick={discard}>
          {t.cancel}
        </button>
      </form>
    </>
  );
}

function PostFields({ form, rows, post }: { form: Form; rows: number; post?: Post }) {
  return (
    <>
      <Field form={form} name="title" label={t.title} autocomplete="off" defaultValue={post?.title ?? ""} />
      <Field form={form} name="body" label={t.text} rows={rows} defaultValue={post?.body ?? ""} />
      <Field
        form={form}
        name="images"
        label={t.image}
        type="url"
        help={t.imageHelp}
        defaultValue={post?.images[0] ?? ""}
      />
      <Problem error={form.problem} />
    </>
  );
}

/** Returns the fields of a form; `others` are the images after the first, which it does not show. */
function readPost(data: FormData, others: string[] = []) {
  const images = [String(data.get("images")).trim(), ...others].filter((url) => url !== "");
  return { title: String(data.get("title")), body: String(data.get("body")), images };
}

/** A button that deletes what the caller wrote. */
function Delete({ confirm, remove, after }: { confirm: string; remove: () => Promise<unknown>; after: () => void }) {
  const act = () => {
    withSession(remove).then(after, sayRefusal);
  };
  return <ConfirmButton label={t.post.delete} confirm={confirm} act={act} class="small quiet" />;
}

function Likers({ postId }: { postId: string }) {
  const likers = usePages("/posts/{post_id}/likers", { path: { post_id: postId }, query: { order: "latest" } });
  return (
    <List class="list people" of={likers} empty={<Empty icon="heart" title={t.post.noLikes} />}>
      {({ user, at }) => <UserLink user={user} note={<Ago at={at} />} />}
    </List>
  );
}

function Comments({ postId }: { postId: string }) {
  const [order, setOrder] = useState<(typeof COMMENT_ORDERS)[number]>("latest");
  const path = { post_id: postId };
  const comments = usePages("/posts/{post_id}/comments", { path, query: { order } });
  const draft = useDraft(`comment on post ${postId}`);
  const form = useForm(async (data) => {
    const body = { body: String(data.get("body")) };
    const written = await withSession(() => plaza.post("/posts/{post_id}/comments", { path, body }));
    comments.change((items) => (order === "latest" ? [written, ...items] : [...items, written]));
    draft.clear();
    draft.form.ref.current?.reset();
    say(t.post.commented);
  });
  return (
    <section>
      <form class="comment" noValidate onSubmit={form.submit} {...draft.form}>
        <Field form={form} name="body" label={t.post.yourComment} rows={2} />
        <Problem error={form.problem} />
        <button type="submit" class="small primary" disabled={form.isSending}>
          {t.post.comment}
        </button>
      </form>
      {(comments.items?.length ?? 0) > 1 && (
        <p class="sort">
          <label for="order">{t.orderLabel}</label>{" "}
          <select id="order" value={order} onChange={(event) => setOrder(event.currentTarget.value as typeof order)}>
            <option value="latest">{t.post.latest}</option>
            <option value="earliest">{t.post.earliest}</option>
          </select>
        </p>
      )}
      <List of={comments} empty={<Empty icon="comment" title={t.post.noComments} />}>
        {(comment) => (
          <OneComment
            comment={comment}
            remove={() => comments.change((items) => items.filter((item) => item.id !== comment.id))}
          />
        )}
      </List>
    </section>
  );
}

function OneComment({ comment, remove }: { comment: Comment; remove: () => void }) {
  const session = useSession();
  const path = { comment_id: comment.id };
  return (
    <article class="remark">
      <UserLink user={comment.author} note={<Ago at={comment.created_at} />} />
      <p class="body">{comment.body}</p>
      <div class="actions">
        <LikeButton type="comment" target={comment} />
        <CollectButton type="comment" target={comment} />
        <KindButtons type="comment" target={comment} />
        <ReportButton target={{ type: "comment", id: comment.id }} ownerId={comment.author.id} />
        {session?.user.id === comment.author.id && (
          <Delete
            confirm={t.post.deleteComment}
            remove={() => plaza.delete("/comments/{comment_id}", { path })}
            after={remove}
          />
        )}
      </div>
    </article>
  );
}

const KINDS = ["note", "blog"] as const;

export function Write() {
  const [kind, setKind] = useState<"note" | "blog">("note");
  const draft = useDraft("post");
  const form = useForm(async (data) => {
    const body = { kind, ...readPost(data) };
    const post = await withSession(() => plaza.post("/posts", { body }));
    draft.clear();
    keepWritten(post);
    say(t.post.published);
    go(`/posts/${post.id}`);
  });
  return (
    <>
      <Title text={t.post.write} />
      <form noValidate onSubmit={form.submit} {...draft.form}>
        <fieldset class="choice">
          <legend class="hidden">{t.post.kind}</legend>
          {KINDS.map((value) => (
            <label key={value}>
              <input type="radio" name="kind" value={value} checked={kind === value} onChange={() => setKind(value)} />
              {t.post[value]}
            </label>
          ))}
        </fieldset>
        <PostFields form={form} rows={kind === "note" ? 5 : 14} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {form.isSending ? t.post.publishing : t.publish}
        </button>
      </form>
    </>
  );
}
