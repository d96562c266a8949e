import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isNewer,
  type LiveControl,
  type LiveInput,
  type LiveTotals,
  type Presence,
  pollTotals,
  type TotalsItem,
} from "../src/index.ts";
import { json, problem, serve } from "./api.ts";

const turn = () => new Promise(setImmediate);
const post = (likes: number, likes_at: string | null) => ({ type: "post" as const, id: "12", likes, likes_at });

/** A source whose reports the test makes. */
function byHand() {
  const source: { input?: LiveInput; stopped: number; changed: number } = { stopped: 0, changed: 0 };
  const start = (input: LiveInput): LiveControl => {
    source.input = input;
    return { changed: () => void source.changed++, wake: () => undefined, stop: () => void source.stopped++ };
  };
  const report = (...items: object[]) => source.input?.report(items as TotalsItem[]);
  return { source, live: () => ({ start }), report };
}

test("a greater token replaces a total, an equal, a lower and no token do not", () => {
  const known = { total: 5, at: "1b" };
  assert.equal(isNewer({ total: 6, at: "1c" }, known), true);
  assert.equal(isNewer({ total: 6, at: "1b" }, known), false);
  assert.equal(isNewer({ total: 6, at: "1a" }, known), false);
  assert.equal(isNewer({ total: 6, at: null }, known), false);
  assert.equal(isNewer({ total: 6, at: null }, { total: 5, at: null }), true);
  assert.equal(isNewer({ total: 6, at: "2" }, known), true, "a later format is greater");
});

test("a reported total moves the shown one, and an older one does not", async () => {
  const { live, report, source } = byHand();
  const { plaza } = serve(() => json({}), { live });
  const like = plaza.like("post", { ...post(41, "1b"), mine: { liked: false } });
  const seen: LiveTotals[] = [];
  const stop = plaza.live(like, (totals) => seen.push(totals));
  report(post(43, "1d"));
  report(post(42, "1c"), post(40, null));
  assert.equal(like.state.total, 43);
  assert.deepEqual(seen, [
    { likes: 41, reactions: { like: 41 }, stale: false },
    { likes: 43, reactions: { like: 43 }, stale: false },
  ]);
  stop();
  stop();
  assert.equal(source.stopped, 1);
});

test("reported totals of all kinds move, each by its own token", () => {
  const { live, report } = byHand();
  const { plaza } = serve(() => json({}), { live });
  const bookmark = plaza.react({ type: "post", id: "12", reactions: { bookmark: { total: 4, at: "1b" } } }, "bookmark");
  const collect = plaza.collect({ id: "12" });
  const seen: LiveTotals[] = [];
  const stop = plaza.live(bookmark, (totals) => seen.push(totals));
  report({
    ...post(41, "1b"),
    comments: 2,
    reactions: { bookmark: { total: 6, at: "1d" }, like: { total: 41, at: "1b" } },
  });
  report({ ...post(42, "1c"), reactions: { bookmark: { total: 5, at: "1c" }, collect: { total: 7, at: "1a" } } });
  assert.equal(bookmark.state.total, 6);
  assert.equal(collect.state.total, 7);
  assert.deepEqual(seen[0], { reactions: { bookmark: 4 }, stale: false });
  assert.deepEqual(seen[seen.length - 1], {
    likes: 42,
    collects: 7,
    comments: 2,
    reactions: { bookmark: 6, like: 42, collect: 7 },
    stale: false,
  });
  stop();
});

test("what another device of the caller did is read for all kinds", async () => {
  const { live, report } = byHand();
  const item = {
    ...post(42, "1c"),
    mine: { liked: true, collected: false },
    reactions: { like: { total: 42, at: "1c", mine: true }, bookmark: { total: 5, at: "1c", mine: true } },
  };
  const { plaza, requests } = serve(() => json({ items: [item], exact: true }), { live });
  await plaza.resume({ token: "t-1", expiresAt: Date.now() + 1e9, user: { id: "7", nickname: "ada", avatar: null } });
  const target = { type: "post" as const, id: "12", reactions: { bookmark: { total: 4, at: "1b", mine: false } } };
  const [like, bookmark] = [plaza.like("post", post(41, "1b")), plaza.react(target, "bookmark")];
  const stop = plaza.live(like);
  report(post(41, "1b"));
  for (let turns = 0; turns < 10; turns += 1) await turn();
  assert.deepEqual(
    requests.map(({ path }) => path),
    ["/reactions/query"],
  );
  assert.deepEqual([like.state.active, bookmark.state.active, bookmark.state.total], [true, true, 5]);
  stop();
});

test("a report during a like is shown after its answer, if it is newer", async () => {
  for (const [answered, shown] of [
    ["1c", 50],
    ["1e", 42],
  ] as const) {
    const { live, report } = byHand();
    const { plaza } = serve(() => json({ liked: true, likes: 42, likes_at: answered, changed: true, exact: true }), {
      live,
    });
    const like = plaza.like("post", { ...post(41, "1b"), mine: { liked: false } });
    const stop = plaza.live(like);
    const confirmed = like.set(true);
    report(post(50, "1d"));
    assert.equal(like.state.total, 42, "the optimistic total stays while the request is in flight");
    assert.deepEqual([(await confirmed).active, like.state.total], [true, shown]);
    stop();
  }
});

test("after a 202 reports are ignored, and a read that has the reaction is not", async () => {
  const { live, report } = byHand();
  const { plaza } = serve(() => json({ liked: true, likes: null, likes_at: null, changed: null, exact: false }, 202), {
    live,
  });
  const like = plaza.like("post", { ...post(41, "1b"), mine: { liked: false } });
  const stop = plaza.live(like);
  await like.set(true);
  report(post(41, "1c"));
  assert.deepEqual([like.state.active, like.state.total], [true, 42]);
  plaza.like("post", { ...post(45, "1d"), mine: { liked: true }, exact: true });
  assert.deepEqual([like.state.active, like.state.total, like.state.exact], [true, 45, true]);
  stop();
});

test("of answers, reports and reads in any order the highest token is shown", async () => {
  let seed = 7;
  const draw = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  for (let run = 0; run < 300; run += 1) {
    const { live, report } = byHand();
    let answer = post(0, "1a");
    const { plaza } = serve(() => json({ ...answer, liked: true, changed: false, exact: true }), { live });
    const like = plaza.like("post", { ...post(0, "1a"), mine: { liked: true } });
    const stop = plaza.live(like);
    let highest = 0;
    for (let step = 0; step < 12; step += 1) {
      const number = draw(20);
      const total = { ...post(number, `1${String.fromCharCode(97 + number)}`) };
      const kind = draw(5);
      if (kind === 0) plaza.like("post", { ...post(99, null), mine: { liked: true } });
      else if (kind === 1) report(post(98, null));
      else {
        highest = Math.max(highest, number);
        if (kind === 2) report(total);
        else if (kind === 3) plaza.like("post", { ...total, mine: { liked: true } });
        else {
          answer = total;
          await like.set(false).catch(() => undefined);
          answer = total;
          await like.set(true);
        }
      }
      assert.equal(like.state.total, highest, `run ${run}, step ${step}`);
    }
    stop();
  }
});

test("a poll is public, obeys max-age, and is not sent while hidden or offline", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  let visible = true;
  let online = true;
  let changed: () => void = () => undefined;
  const presence: Presence = {
    visible: () => visible,
    online: () => online,
    idle: () => false,
    subscribe: (listener) => {
      changed = listener;
      return () => undefined;
    },
  };
  let likes = 41;
  const { plaza, requests } = serve(
    () => {
      likes += 1;
      return json({ items: [post(likes, `1${likes}`)] }, 200, { "cache-control": "public, max-age=7, s-maxage=1" });
    },
    { presence },
  );
  await plaza.resume({ token: "t-1", expiresAt: Date.now() + 1e9, user: { id: "7", nickname: "ada", avatar: null } });
  const polls = () => requests.filter(({ path }) => path.startsWith("/totals"));
  const stop = plaza.live({ type: "post", id: "12" });
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    for (let turns = 0; turns < 10; turns += 1) await turn();
  };
  await pass(100);
  assert.equal(polls().length, 1);
  assert.equal(polls()[0]?.path, "/totals?of=post%3A12");
  assert.equal(polls()[0]?.headers.get("authorization"), null);
  assert.equal(polls()[0]?.headers.get("x-request-id"), null, "no preflight");
  await pass(6_900);
  assert.equal(polls().length, 1);
  await pass(200);
  assert.equal(polls().length, 2);
  visible = false;
  changed();
  await pass(100_000);
  assert.equal(polls().length, 2, "nothing is sent while hidden");
  visible = true;
  changed();
  await pass(500);
  assert.equal(polls().length, 3, "at once when visible");
  online = false;
  changed();
  await pass(100_000);
  assert.equal(polls().length, 3);
  stop();
});

test("two failures make numbers stale, and Retry-After is obeyed", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const presence: Presence = {
    visible: () => true,
    online: () => true,
    idle: () => false,
    subscribe: () => () => undefined,
  };
  let fails = true;
  const { plaza, requests } = serve(
    () => (fails ? problem(503, "unavailable", {}, { "retry-after": "20" }) : json({ items: [post(1, "1a")] })),
    { presence },
  );
  const seen: LiveTotals[] = [];
  const stop = plaza.live({ type: "post", id: "12" }, (totals) => seen.push(totals));
  const pass = async (ms: number) => {
    t.mock.timers.tick(ms);
    for (let turns = 0; turns < 10; turns += 1) await turn();
  };
  await pass(100);
  await pass(19_900);
  assert.equal(requests.length, 1);
  await pass(5_200);
  assert.equal(requests.length, 2);
  assert.deepEqual(seen, [{ stale: true }]);
  fails = false;
  await pass(30_100);
  assert.deepEqual(seen.slice(1), [
    { likes: 1, reactions: { like: 1 }, stale: true },
    { likes: 1, reactions: { like: 1 }, stale: false },
  ]);
  stop();
});

test("a source of one's own may use the poller", () => {
  assert.equal(typeof pollTotals, "function");
});
