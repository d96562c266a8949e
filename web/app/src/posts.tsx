/** A post as it is shown in lists. */
import type { ComponentChildren } from "preact";
import { plaza } from "shared/plaza.ts";
import { Ago, Icon } from "shared/ui.tsx";
import { UserLink } from "./people.tsx";
import { pictureUrl } from "./pictures.ts";
import { CollectButton, CommentCount, KindButtons, LikeButton } from "./reactions.tsx";
import { t } from "./texts.ts";
import type { PostPreview } from "./types.ts";

export function PostActions({ post }: { post: PostPreview }) {
  return (
    <div class="actions">
      <LikeButton type="post" target={post} />
      <a class="reaction" href={`#/posts/${post.id}`}>
        <Icon name="comment" />
        <span class="hidden">{t.comments}</span>
        <CommentCount post={post} />
      </a>
      <CollectButton type="post" target={post} />
      <KindButtons type="post" target={post} />
      {post.truncated && (
        <a class="fine" href={`#/posts/${post.id}`}>
          {t.post.readMore}
        </a>
      )}
    </div>
  );
}

export function Images({ of }: { of: string[] }) {
  if (of.length === 0) return null;
  return (
    <div class="images" data-count={Math.min(of.length, 3)}>
      {of.slice(0, 3).map((url) => (
        <img key={url} src={pictureUrl(url)} alt="" loading="lazy" />
      ))}
    </div>
  );
}

export function PostCard({ post, rank }: { post: PostPreview; rank?: ComponentChildren }) {
  return (
    <article class="card post">
      {rank}
      <UserLink user={post.author} note={<Ago at={post.created_at} />} />
      <h2>
        <a href={`#/posts/${post.id}`}>{post.title || t.post.untitled}</a>
      </h2>
      <p class="body clamp">{post.body_preview}</p>
      <Images of={post.images} />
      <PostActions post={post} />
    </article>
  );
}

/** Returns the posts of the ranking whose authors a new user may follow. */
export async function readPopular(signal: AbortSignal): Promise<PostPreview[]> {
  const page = await plaza.posts.listRanked({ window: "all", limit: 20 }, { signal });
  return page.items;
}
