import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReactionState } from "../src/index.ts";
import { deferred, json, problem, type Request, SIGNED_IN, serve } from "./api.ts";

const POST = { id: "12", likes: 41, mine: { liked: false }, exact: true };
const liked = (likes: number | null, active = true) =>
  json(
    { liked: active, likes, changed: likes === null ? null : true, exact: likes !== null },
    likes === null ? 202 : 200,
  );

/** Returns what a user sees after each change: "♥ 42". */
function watch(reaction: { subscribe: (listener: (state: ReactionState) => void) => void }): string[] {
  const seen: string[] = [];
  reaction.subscribe(({ active, total }) => {
    const shown = `${active ? "♥" : "♡"} ${total}`;
    if (seen[seen.length - 1] !== shown) seen.push(shown);
  });
  return seen;
}

/** Serves requests whose answers the test gives in any order. */
function serveByHand() {
  const waiting: { request: Request; answer: (response: Response) => void; fail: (error: unknown) => void }[] = [];
  const api = serve(
    (request) => {
      const { promise, resolve, reject } = deferred<Response>();
      waiting.push({ request, answer: resolve, fail: reject });
      return promise;
    },
    { retry: { attempts: 1 } },
  );
  return { ...api, waiting, turn: () => new Promise(setImmediate) };
}

test("a like is shown before its answer and confirmed by it", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const like = plaza.like("post", POST);
  const seen = watch(like);
  const confirmed = like.set(true);
  assert.deepEqual(like.state, { active: true, total: 42, pending: true, exact: true });
  await turn();
  waiting[0]?.answer(liked(50));
  assert.deepEqual(await confirmed, { active: true, total: 50, pending: false, exact: true });
  assert.deepEqual(seen, ["♥ 42", "♥ 50"]);
});

test("of rapid toggles one request is in flight, and the last state is sent", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const like = plaza.like("post", POST);
  const seen = watch(like);
  void like.toggle();
  void like.toggle();
  void like.toggle();
  const confirmed = like.toggle();
  await turn();
  assert.equal(waiting.length, 1);
  waiting[0]?.answer(liked(42));
  await turn();
  waiting[1]?.answer(liked(41, false));
  assert.equal((await confirmed).active, false);
  assert.deepEqual(
    waiting.map((answer) => answer.request.method),
    ["PUT", "DELETE"],
  );
  assert.deepEqual(seen, ["♥ 42", "♡ 41", "♥ 42", "♡ 41"]);
});

test("toggles that end where they began need no second request", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const like = plaza.like("post", POST);
  void like.set(true);
  void like.set(false);
  const confirmed = like.set(true);
  await turn();
  waiting[0]?.answer(liked(42));
  assert.equal((await confirmed).active, true);
  assert.equal(waiting.length, 1);
});

test("a state that is already confirmed sends nothing", async () => {
  const { plaza, requests } = serve(() => liked(1));
  assert.equal((await plaza.like("post", POST).set(false)).total, 41);
  assert.equal(requests.length, 0);
});

test("a read that began before the answer of a like changes nothing", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const like = plaza.like("post", POST);
  const seen = watch(like);
  const read = plaza.get("/posts/{post_id}", { path: { post_id: "12" } });
  await turn();
  const confirmed = like.set(true);
  await turn();
  waiting[1]?.answer(liked(42));
  await confirmed;
  waiting[0]?.answer(json({ ...POST, likes: 40 }));
  assert.equal(plaza.like("post", await read), like);
  assert.deepEqual(seen, ["♥ 42"]);
  const later = plaza.get("/posts/{post_id}", { path: { post_id: "12" } });
  await turn();
  waiting[2]?.answer(json({ ...POST, likes: 60, mine: { liked: true } }));
  plaza.like("post", await later);
  assert.deepEqual(seen, ["♥ 42", "♥ 60"]);
});

test("of two reads the one that began later counts, whichever arrives first", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const read = () => plaza.get("/posts/ranking");
  const [older, newer] = [read(), read()];
  await turn();
  waiting[1]?.answer(json({ items: [{ ...POST, likes: 50 }], next: null }));
  const like = plaza.like("post", (await newer).items[0] ?? POST);
  waiting[0]?.answer(json({ items: [{ ...POST, likes: 41 }], next: null }));
  assert.equal(plaza.like("post", (await older).items[0] ?? POST), like);
  assert.equal(like.state.total, 50);
});

test("a read that arrives while a like is in flight changes nothing", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const like = plaza.like("post", POST);
  const confirmed = like.set(true);
  await turn();
  const read = plaza.get("/posts/{post_id}", { path: { post_id: "12" } });
  await turn();
  waiting[1]?.answer(json(POST));
  plaza.like("post", await read);
  assert.equal(like.state.active, true);
  waiting[0]?.answer(liked(42));
  assert.equal((await confirmed).active, true);
});

test("a provisional like keeps the shown number, and an inexact read does not take it back", async () => {
  const { plaza } = serve(({ method }) => (method === "PUT" ? liked(null) : json({ ...POST, exact: false })));
  const like = plaza.like("post", POST);
  const seen = watch(like);
  assert.deepEqual(await like.set(true), { active: true, total: 42, pending: false, exact: false });
  plaza.like("post", await plaza.get("/posts/{post_id}", { path: { post_id: "12" } }));
  assert.deepEqual(seen, ["♥ 42"]);
});

test("a refused like is taken back, with its error", async () => {
  const { plaza } = serve(() => problem(410, "gone"));
  const like = plaza.like("post", POST);
  const seen = watch(like);
  await assert.rejects(like.set(true), { slug: "gone" });
  assert.deepEqual(seen, ["♥ 42", "♡ 41"]);
  assert.equal((like.state.error as { slug: string }).slug, "gone");
});

test("an ignored promise of a refused like is no unhandled rejection", async () => {
  const { plaza } = serve(() => problem(410, "gone"));
  const unhandled: unknown[] = [];
  const listen = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", listen);
  const like = plaza.like("post", POST);
  void like.set(true);
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  process.off("unhandledRejection", listen);
  assert.notEqual(like.state.error, undefined);
  assert.deepEqual(unhandled, []);
});

test("after a lost response the next state is sent although it equals the last known state", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const like = plaza.like("post", POST);
  void like.set(true);
  await turn();
  waiting[0]?.fail(new TypeError("reset"));
  await turn();
  assert.equal(like.state.active, false);
  const confirmed = like.set(false);
  await turn();
  assert.equal(waiting[1]?.request.method, "DELETE");
  waiting[1]?.answer(liked(41, false));
  assert.deepEqual(await confirmed, { active: false, total: 41, pending: false, exact: true });
});

test("a state after a failing one is sent, and no error is shown", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const like = plaza.like("post", POST);
  void like.set(true);
  await turn();
  const confirmed = like.set(false);
  waiting[0]?.fail(new TypeError("reset"));
  await turn();
  assert.equal(waiting[1]?.request.method, "DELETE");
  waiting[1]?.answer(liked(41, false));
  assert.equal((await confirmed).error, undefined);
});

test("a state set by a listener is sent", async () => {
  const { plaza, requests } = serve(({ method }) => liked(method === "PUT" ? 42 : 41, method === "PUT"));
  const like = plaza.like("post", POST);
  const end = like.subscribe((state) => {
    if (!state.pending && state.active) void like.set(false);
  });
  await like.set(true);
  while (like.state.pending || like.state.active) await new Promise(setImmediate);
  end();
  assert.deepEqual(
    requests.map((request) => request.method),
    ["PUT", "DELETE"],
  );
});

test("any order of toggles, answers, failures and reads ends with the last state", async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    let state = seed * 7919;
    const chance = (below: number) => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return Math.floor((state / 2147483648) * below);
    };
    const server = { liked: false, others: 10 };
    const { plaza, waiting, turn } = serveByHand();
    const like = plaza.like("post", { ...POST, likes: 10 });
    let last = false;
    const shown: boolean[] = [];
    like.subscribe(({ active }) => shown.push(active === last));
    const answerOne = () => {
      const [sent] = waiting.splice(chance(waiting.length), 1);
      if (sent === undefined) return;
      if (sent.request.method !== "GET") server.liked = sent.request.method === "PUT";
      server.others += chance(2);
      const likes = server.others + Number(server.liked);
      sent.answer(
        sent.request.method === "GET"
          ? json({ ...POST, likes, mine: { liked: server.liked } })
          : liked(likes, server.liked),
      );
    };
    for (let step = 0; step < 30; step += 1) {
      const act = chance(3);
      if (act === 0) {
        last = !last;
        void like.set(last);
      }
      if (act === 1)
        void plaza.get("/posts/{post_id}", { path: { post_id: "12" } }).then((post) => plaza.like("post", post));
      if (act === 2) answerOne();
      await turn();
    }
    while (waiting.length > 0) {
      answerOne();
      await turn();
      await turn();
    }
    assert.ok(shown.every(Boolean), `seed ${seed}: an older state was shown`);
    assert.deepEqual([like.state.active, server.liked, like.state.pending], [last, last, false], `seed ${seed}`);
  }
});

test("collect, follow and a kind of the deployment work as like does, and need no total", async () => {
  const { plaza, requests } = serve(({ path }) => {
    if (path.startsWith("/users")) return json({ following: true, followers: 3, changed: true });
    if (path.startsWith("/targets")) return json({ on: true, total: 2, at: "1b", changed: true, exact: true });
    return json({ collected: true, collects: 8, changed: true, exact: true });
  });
  assert.equal((await plaza.collect({ id: "5", collects: 7 }).set(true)).total, 8);
  assert.equal((await plaza.collect("comment", { id: "6", collects: 7 }).set(true)).total, 8);
  assert.equal((await plaza.collect("review", { id: "7" }).set(true)).total, 8);
  const bookmark = plaza.react({ type: "post", id: "5" }, "bookmark");
  assert.equal(bookmark.state.total, null);
  assert.deepEqual(await bookmark.set(true), { active: true, total: 2, pending: false, exact: true });
  const follow = plaza.follow({ id: "9" });
  assert.equal(follow.state.total, null);
  assert.equal((await follow.set(true)).total, 3);
  assert.deepEqual(
    requests.map((request) => request.path),
    [
      "/posts/5/collects/me",
      "/comments/6/collects/me",
      "/reviews/7/collects/me",
      "/targets/post/5/reactions/bookmark/me",
      "/users/9/followers/me",
    ],
  );
});

test("a reaction starts from the reactions that were read, and a refused one is taken back", async () => {
  const { plaza, requests } = serve(() => problem(410, "gone"));
  const reactions = { bookmark: { total: 4, at: "1b", mine: true } };
  const bookmark = plaza.react({ type: "comment", id: "12", reactions }, "bookmark");
  const seen = watch(bookmark);
  assert.deepEqual(bookmark.state, { active: true, total: 4, pending: false, exact: true });
  await assert.rejects(bookmark.toggle(), { slug: "gone" });
  assert.deepEqual(seen, ["♡ 3", "♥ 4"]);
  assert.equal(requests[0]?.method, "DELETE");
  assert.equal(
    plaza.react({ type: "comment", id: "12", reactions: { bookmark: { total: 3, at: "1a" } } }, "bookmark"),
    bookmark,
  );
  assert.equal(bookmark.state.total, 4, "an older read changes nothing");
  assert.notEqual(plaza.react({ type: "comment", id: "12" }, "constructor"), bookmark);
});

test("a reaction of a built-in kind is the object of its named method", async () => {
  const { plaza, requests } = serve(() => liked(42));
  const reactions = { like: { total: 41, at: null, mine: false } };
  const like = plaza.react({ type: "post", id: "12", reactions }, "like");
  assert.equal(like.state.total, 41);
  assert.equal(plaza.like("post", POST), like);
  assert.equal(plaza.react({ type: "post", id: "12" }, "collect"), plaza.collect({ id: "12" }));
  assert.equal(plaza.react({ type: "user", id: "9" }, "follow"), plaza.follow({ id: "9" }));
  assert.equal((await like.set(true)).total, 42);
  assert.deepEqual(
    requests.map(({ path }) => path),
    ["/posts/12/likes/me"],
  );
});

test("a copy of a read with a type is as old as the read", async () => {
  const { plaza, waiting, turn } = serveByHand();
  const read = () => plaza.get("/posts/{post_id}", { path: { post_id: "12" } });
  const answer = (total: number) => json({ ...POST, reactions: { bookmark: { total, at: null, mine: false } } });
  const [older, newer] = [read(), read()];
  await turn();
  waiting[1]?.answer(answer(50));
  const bookmark = plaza.react({ ...(await newer), type: "post" }, "bookmark");
  waiting[0]?.answer(answer(41));
  assert.equal(plaza.react({ ...(await older), type: "post" }, "bookmark"), bookmark);
  assert.equal(bookmark.state.total, 50);
});

test("another session starts with reactions of its own", async () => {
  const { plaza } = serve(({ path }) => (path === "/auth/sessions" ? json(SIGNED_IN, 201) : liked(42)));
  const before = plaza.like("post", POST);
  await before.set(true);
  await plaza.signIn("c", "123456");
  assert.equal(plaza.like("post", POST).state.active, false);
});

test("reactions that are not in use are dropped beyond a limit", async () => {
  const { plaza } = serve(() => liked(1));
  const used = plaza.like("post", { id: "used" });
  used.subscribe(() => undefined);
  const unused = plaza.like("post", { id: "unused" });
  for (let number = 0; number < 500; number += 1) plaza.like("post", { id: `${number}` });
  assert.equal(plaza.like("post", { id: "used" }), used);
  assert.notEqual(plaza.like("post", { id: "unused" }), unused);
});
