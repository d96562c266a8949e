/** Compiles only if these mistakes of a caller do not: `tsc --project .` reads it, nothing runs it. */
import type { Plaza, ProblemError } from "../src/index.ts";

export async function mistakes(plaza: Plaza, error: ProblemError): Promise<void> {
  // @ts-expect-error: no problem has this slug
  if (error.slug === "sold-outt") return;
  if (error.slug === "sold-out" || error.slug === "about:blank") return;
  // @ts-expect-error: the id is missing
  await plaza.posts.like();
  // @ts-expect-error: a post is no id
  await plaza.posts.like(await plaza.posts.get("1"));
  // @ts-expect-error: a post has no field of this name
  await plaza.posts.create({ kind: "note", titel: "Hello", body: "First" });
  // @ts-expect-error: the feed takes no order
  await plaza.feed.listPosts({ order: "latest" });
  // @ts-expect-error: the name that is searched is missing
  await plaza.shops.search();
  // @ts-expect-error: one post is no list
  for await (const post of plaza.posts.get("1")) console.log(post);
  const page = await plaza.posts.listRanked({ window: "day" });
  // @ts-expect-error: a post has no such field
  page.items[0]?.titel;
}
