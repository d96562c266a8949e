import assert from "node:assert/strict";
import { mock, test } from "node:test";
import type { Notification, UnreadState } from "../src/index.ts";
import { EVERY_MS } from "../src/unread.ts";
import { deferred, json, problem, type Request, SIGNED_IN, serve } from "./api.ts";

const SESSION = { token: SIGNED_IN.token, expiresAt: Date.now() + 60_000, user: SIGNED_IN.user };
const turn = () => new Promise(setImmediate);
const reply = (unread: number, at: string) => json({ unread, at: `1--------${at}` });

function item(id: string, read = false): Notification {
  return {
    kind: "like",
    subject: { type: "post", id, text: "Noodles", url: null },
    total: 3,
    fresh: read ? 0 : 2,
    read,
    actors: [],
    changed_at: "2026-11-26T15:00:00Z",
  };
}

/** Serves requests whose answers the test gives in any order. */
async function follow() {
  const waiting: { request: Request; answer: (response: Response) => void }[] = [];
  const api = serve(
    (request) => {
      const { promise, resolve } = deferred<Response>();
      waiting.push({ request, answer: resolve });
      return promise;
    },
    { retry: { attempts: 1 } },
  );
  await api.plaza.resume(SESSION);
  const states: UnreadState[] = [];
  const own = api.plaza.unread();
  const end = own.subscribe((state) => states.push(state));
  await turn();
  return { ...api, waiting, own, states, end };
}

test("an unread counter is read once it has a subscriber", async (t) => {
  const { own, waiting, end } = await follow();
  t.after(end);
  assert.deepEqual(own.state, { unread: null, at: null, stale: false });
  assert.equal(waiting[0]?.request.path, "/users/me/notifications/unread");
  waiting[0]?.answer(reply(1204, "a"));
  await turn();
  assert.deepEqual(own.state, { unread: 1204, at: "1--------a", stale: false });
});

test("a late answer does not bring an older number back", async (t) => {
  const { own, waiting, end } = await follow();
  t.after(end);
  own.observe({ unread: 0, at: "1--------c" });
  waiting[0]?.answer(reply(5, "b"));
  await turn();
  assert.equal(own.state.unread, 0);
});

test("a mark is shown at once and confirmed by its answer", async (t) => {
  const { own, waiting, end } = await follow();
  t.after(end);
  waiting[0]?.answer(reply(3, "a"));
  await turn();
  const page = { at: "1--------a", items: [item("1"), item("2"), item("3", true)] };
  const groups = [{ kind: "like", subject: { type: "post", id: "1" } } as const];
  const marked = own.markRead(page, [...groups]);
  assert.equal(own.state.unread, 2);
  await turn();
  assert.deepEqual(waiting[1]?.request.body, { at: page.at, groups });
  waiting[1]?.answer(json({ unread: 2, at: "1--------b", left: 0 }));
  assert.deepEqual(await marked, { unread: 2, at: "1--------b", stale: false });
});

test("a mark of all is repeated while something is left", async (t) => {
  const { own, waiting, end } = await follow();
  t.after(end);
  waiting[0]?.answer(reply(700, "a"));
  await turn();
  const marked = own.markRead({ at: "1--------a", items: [] });
  assert.equal(own.state.unread, 0);
  await turn();
  waiting[1]?.answer(json({ unread: 200, at: "1--------b", left: 200 }));
  await turn();
  waiting[2]?.answer(json({ unread: 1, at: "1--------c", left: 0 }));
  assert.equal((await marked).unread, 1, "one notified meanwhile");
});

test("a mark that the API refuses is taken back", async (t) => {
  const { own, waiting, end } = await follow();
  t.after(end);
  waiting[0]?.answer(reply(2, "a"));
  await turn();
  const marked = own.markRead({ at: "x", items: [] });
  assert.equal(own.state.unread, 0);
  await turn();
  waiting[1]?.answer(problem(400, "invalid-request"));
  await assert.rejects(marked);
  assert.equal(own.state.unread, 2);
});

test("an unread counter is read again each 15 s, later after failures", async (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const { own, waiting, end } = await follow();
  t.after(end);
  waiting[0]?.answer(reply(1, "a"));
  await turn();
  mock.timers.tick(EVERY_MS);
  await turn();
  assert.equal(waiting.length, 2);
  waiting[1]?.answer(problem(503, "unavailable"));
  await turn();
  assert.deepEqual(own.state, { unread: 1, at: "1--------a", stale: true });
  mock.timers.tick(EVERY_MS);
  await turn();
  assert.equal(waiting.length, 2);
  mock.timers.tick(EVERY_MS);
  await turn();
  assert.equal(waiting.length, 3);
  own.wake();
  assert.equal(waiting.length, 3, "one read at a time");
});

test("the unread counter of another user is forgotten", async (t) => {
  const { plaza, own, waiting, states, end } = await follow();
  t.after(end);
  waiting[0]?.answer(reply(4, "z"));
  await turn();
  await plaza.resume({ ...SESSION, token: "of-another", user: { ...SESSION.user, id: "99" } });
  assert.equal(own.state.unread, null);
  await turn();
  waiting[1]?.answer(reply(1, "a"));
  await turn();
  assert.equal(own.state.unread, 1);
  assert.ok(states.length >= 3);
});
