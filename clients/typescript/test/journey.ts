/**
 * The journey of two users through a running stack: `node journey.ts API WEB VOUCHER`, where
 * VOUCHER has one unit and WEB shows the codes that the stack sends. Prints what it created.
 */
import assert from "node:assert/strict";
import { Plaza, ProblemError } from "../src/index.ts";

const [apiUrl = "", webUrl = "", voucherId = ""] = process.argv.slice(2);
const DEADLINE_MS = 30_000;

async function signIn(phone: string): Promise<Plaza> {
  const plaza = new Plaza(apiUrl);
  const { challenge } = await plaza.sendCode(phone);
  const shown = await fetch(`${webUrl}/local/texts?phone=${encodeURIComponent(phone)}`);
  const { code } = (await shown.json()) as { code: string };
  await assert.rejects(plaza.signIn(challenge, code === "000000" ? "000001" : "000000"), { slug: "code-refused" });
  await plaza.signIn(challenge, code);
  return plaza;
}

async function until<T>(what: string, read: () => Promise<T | undefined | false>): Promise<T> {
  const deadline = Date.now() + DEADLINE_MS;
  for (;;) {
    const value = await read();
    if (value !== undefined && value !== false) return value;
    assert.ok(Date.now() < deadline, `waited ${DEADLINE_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const ada = await signIn("+14155550171");
const bo = await signIn("+14155550172");
const adaId = ada.session?.user.id ?? "";
const boId = bo.session?.user.id ?? "";

// Ada writes two posts; a repeated creation is the same post.
const body = { kind: "note", title: "Hello", body: "First post" } as const;
const post = await ada.post("/posts", { body, idempotencyKey: "journey" });
assert.equal((await ada.post("/posts", { body, idempotencyKey: "journey" })).id, post.id);
await assert.rejects(ada.post("/posts", { body: { ...body, title: "Other" }, idempotencyKey: "journey" }), {
  slug: "idempotency-key-reused",
});
const second = await ada.post("/posts", { body });
const refusal = await ada.post("/posts", { body: { ...body, title: " " } }).then(
  () => assert.fail("a blank title was accepted"),
  (reason: unknown) => reason,
);
assert.ok(refusal instanceof ProblemError && refusal.field("title") && refusal.requestId);

// Bo follows Ada and reads both posts in the feed, page by page.
assert.equal((await bo.follow(await bo.get("/users/{user_id}", { path: { user_id: adaId } })).set(true)).total, 1);
await until("both posts are in the feed", async () => {
  const ids = [];
  for await (const item of bo.items("/feed", { query: { limit: 1 } })) ids.push(item.id);
  if (ids.length < 2) return false;
  assert.deepEqual(ids, [second.id, post.id]);
  return true;
});

// Bo toggles a like quickly; all others see the last state.
const read = await bo.get("/posts/{post_id}", { path: { post_id: post.id } });
const like = bo.like("post", read);
for (let toggle = 0; toggle < 4; toggle += 1) void like.toggle();
assert.deepEqual(await like.toggle(), { active: true, total: 1, pending: false, exact: true });
await bo.collect(read).set(true);
const comment = await bo.post("/posts/{post_id}/comments", { path: { post_id: post.id }, body: { body: "Welcome!" } });
await ada.like("comment", comment).set(true);
const seen = await ada.get("/posts/{post_id}", { path: { post_id: post.id } });
assert.deepEqual([seen.likes, seen.collects, seen.mine], [1, 1, { liked: false, collected: false }]);
assert.equal(ada.like("post", seen).state.total, 1);
await until("the like is listed", async () => {
  for await (const liker of ada.items("/posts/{post_id}/likers", { path: { post_id: post.id } })) {
    if (JSON.stringify(liker).includes(`"${boId}"`)) return true;
  }
  return false;
});

// Both want the last unit: one of them gets it, and gets it once.
const outcomes = await Promise.allSettled([
  ada.buy(voucherId),
  bo.buy(voucherId),
  ada.buy(voucherId),
  bo.buy(voucherId),
]);
const bought = outcomes.flatMap((outcome) =>
  outcome.status === "fulfilled" && outcome.value.status === "success" ? [outcome.value.order_id] : [],
);
assert.equal(new Set(bought).size, 1);

assert.equal((await bo.put("/checkins/today")).total, 1);
await bo.patch("/users/me", { body: { nickname: "bo" } });
assert.equal((await ada.get("/users/{user_id}", { path: { user_id: boId } })).nickname, "bo");

await bo.signOut();
assert.equal(bo.session, null);
await assert.rejects(bo.get("/users/me"), { slug: "unauthenticated" });
assert.equal(bo.like("post", await bo.get("/posts/{post_id}", { path: { post_id: post.id } })).state.active, false);
console.log(JSON.stringify({ post: post.id, buyer: bought[0] }));
