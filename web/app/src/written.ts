/** The posts that the caller wrote since the page was loaded: lists show them at once. */
import type { Pages } from "shared/hooks.ts";
import { onLeave } from "shared/session.ts";
import type { Post, PostPreview } from "./types.ts";

const PREVIEW_LENGTH = 300;
let written: PostPreview[] = [];
onLeave(() => {
  written = [];
});

/** Keeps a post that was written or changed. */
export function keepWritten({ body, ...post }: Post): void {
  const characters = [...body];
  const preview = characters.slice(0, PREVIEW_LENGTH).join("");
  dropWritten(post.id);
  written = [...written, { ...post, body_preview: preview, truncated: characters.length > PREVIEW_LENGTH }];
}

export function dropWritten(id: string): void {
  written = written.filter((post) => post.id !== id);
}

/**
 * Returns a list of posts, newest first, with the caller's posts that it lacks: the feed has only
 * followed users, and a list that was read before is older. `isOwn`: whether it may have them.
 */
export function useWritten(posts: Pages<PostPreview>, isOwn = true): Pages<PostPreview> {
  const { items, hasMore } = posts;
  if (!isOwn || items === undefined || written.length === 0) return posts;
  const known = new Set(items.map(({ id }) => id));
  // Older ones belong on a page that is not read yet.
  const end = hasMore ? (items.at(-1)?.created_at ?? "") : "";
  const lacking = written.filter((post) => !known.has(post.id) && post.created_at > end);
  const merged = [...lacking, ...items].sort((one, other) => (one.created_at < other.created_at ? 1 : -1));
  return lacking.length === 0 ? posts : { ...posts, items: merged };
}
