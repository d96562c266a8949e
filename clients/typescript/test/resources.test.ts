import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Plaza, Slug } from "../src/index.ts";
import { json, serve } from "./api.ts";

type Method = (...given: unknown[]) => Promise<unknown>;
const CONTRACT = JSON.parse(
  readFileSync(`${import.meta.dirname}/../../../functions/api/system/openapi.json`, "utf8"),
) as { paths: Record<string, Record<string, { operationId: string; parameters?: { in: string }[] }>> };
const OPERATIONS = Object.entries(CONTRACT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, ...operation })),
);

/** Returns all named methods, and the names by which they are called: `posts.like`. */
function list(plaza: Plaza): [name: string, method: Method][] {
  return Object.entries(plaza).flatMap(([resource, methods]) =>
    Object.entries(methods as Record<string, Method>).map(([name, method]): [string, Method] => [
      `${resource}.${name}`,
      method,
    ]),
  );
}

test("each operation of the contract has one named method", async () => {
  const { plaza, requests } = serve(() => json({ items: [], next: null }));
  for (const [, method] of list(plaza)) await method("1", "1", "1", "1");
  assert.deepEqual(
    requests.map(({ method, path }) => `${method} ${path.replace(/\?.*/, "")}`).sort(),
    OPERATIONS.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, "1")}`).sort(),
  );
});

test("a method is named by the id of its operation, without its resource", () => {
  const { plaza } = serve(() => json({}));
  const names = list(plaza).map(([name]) => name);
  for (const name of [
    "posts.like",
    "posts.unlike",
    "posts.listLikers",
    "posts.createComment",
    "comments.collect",
    "reactions.set",
    "reactions.remove",
    "reactions.get",
    "reactions.list",
    "users.listMyReactions",
    "users.follow",
    "users.getMyProfile",
    "vouchers.placeOrder",
    "vouchers.joinWaitlist",
    "shopTypes.list",
    "checkins.create",
    "feed.listPosts",
  ]) {
    assert.ok(names.includes(name), name);
  }
});

test("a method takes the parameters of the path, then the body or the query, then options", async () => {
  const { plaza, requests } = serve(() => json({ items: [], next: null }));
  await plaza.posts.like("12");
  await plaza.posts.createComment("12", { body: "Hi" }, { idempotencyKey: "mine" });
  await plaza.posts.listLikers("12", { limit: 2 }, { timeoutMs: 5_000 });
  await plaza.reactions.set("post", "12", "bookmark");
  await plaza.reactions.list("post", "12", "bookmark", { limit: 2 });
  await plaza.shops.search({ name: "a b&c" });
  await plaza.ops.listQueues({ timeoutMs: 5_000 });
  await plaza.users.updateMyProfile({ nickname: "ada" });
  assert.deepEqual(
    requests.map(({ method, path, body, headers }) => [method, path, body, headers.get("idempotency-key")]),
    [
      ["PUT", "/posts/12/likes/me", undefined, null],
      ["POST", "/posts/12/comments", { body: "Hi" }, "mine"],
      ["GET", "/posts/12/likers?limit=2", undefined, null],
      ["PUT", "/targets/post/12/reactions/bookmark/me", undefined, null],
      ["GET", "/targets/post/12/reactions/bookmark?limit=2", undefined, null],
      ["GET", "/shops/search?name=a%20b%26c", undefined, null],
      ["GET", "/ops/queues", undefined, null],
      ["PATCH", "/users/me", { nickname: "ada" }, null],
    ],
  );
});

test("a list is its first page, and with `for await` the items of all pages", async () => {
  const pages: Record<string, object> = {
    "/feed?limit=2": { items: [{ id: "4" }, { id: "3" }], next: "c1" },
    "/feed?limit=2&cursor=c1": { items: [{ id: "2" }], next: null },
  };
  const { plaza, requests } = serve(({ path }) => json(pages[path]));
  const listed = plaza.feed.listPosts({ limit: 2 });
  assert.equal((await listed).next, "c1");
  assert.equal(requests.length, 1);
  const ids: string[] = [];
  for await (const post of listed) ids.push(post.id);
  assert.deepEqual(ids, ["4", "3", "2"]);
  assert.equal(requests.length, 2);
});

test("each problem of the contract is a slug", () => {
  const text = JSON.stringify(CONTRACT);
  const used = new Set([...text.matchAll(/\/problems\/([a-z-]+)"/g)].map(([, slug]) => slug));
  const source = readFileSync(`${import.meta.dirname}/../src/contract.ts`, "utf8");
  const [, union = ""] = /export type Slug =\n((?: {2}\| ".*";?\n)+)/.exec(source) ?? [];
  const slugs = [...union.matchAll(/"(.*)"/g)].map(([, slug]) => slug);
  assert.deepEqual(slugs, [...used].sort());
  assert.ok(slugs.includes("sold-out" satisfies Slug));
});
