import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import {
  memoryStore,
  NetworkError,
  Plaza,
  PlazaError,
  ProblemError,
  type Session,
  type Visitor,
  webStore,
} from "../src/index.ts";
import { answer, json, problem, type Request, SIGNED_IN, serve } from "./api.ts";

const TIMEOUT_MS = 9_999;
const POST = { kind: "note", title: "Hello", body: "First" } as const;
const rejectionOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.fail("it was not rejected"),
    (reason: unknown) => reason,
  );
const UNAVAILABLE = () => problem(503, "unavailable", {}, { "retry-after": "0" });

test("path and query parameters are encoded, and undefined ones are left out", async () => {
  const { plaza, requests } = serve(() => json({ items: [], next: null }));
  await plaza.get("/posts/{post_id}/likers", { path: { post_id: "1/2?" }, query: { limit: 5, order: "latest" } });
  await plaza.get("/posts/ranking", { query: {} });
  assert.deepEqual(
    requests.map((request) => request.path),
    ["/posts/1%2F2%3F/likers?limit=5&order=latest", "/posts/ranking"],
  );
});

test("a read without a session has no header that needs a preflight", async () => {
  const { plaza, requests } = serve(() => json({}));
  await plaza.get("/health");
  assert.deepEqual([...(requests[0]?.headers.keys() ?? [])], ["accept"]);
});

test("a creation keeps its idempotency key over its attempts, and each call has its own", async () => {
  const { plaza, requests } = serve(
    (_, number) => [UNAVAILABLE(), new TypeError("reset")][number - 1] ?? json({}, 201),
  );
  await plaza.post("/posts", { body: POST });
  await plaza.post("/posts", { body: POST });
  await plaza.post("/posts", { body: POST, idempotencyKey: "mine" });
  const keys = requests.map((request) => request.headers.get("idempotency-key"));
  assert.equal(keys.length, 5);
  assert.equal(new Set(keys.slice(0, 3)).size, 1);
  assert.match(keys[0] ?? "", /^[0-9a-f]{32}$/);
  assert.notEqual(keys[3], keys[0]);
  assert.equal(keys[4], "mine");
});

test("requests that may have a second effect are not repeated", async () => {
  for (const failure of [UNAVAILABLE, () => new TypeError("reset")]) {
    const { plaza, requests } = serve(failure);
    await assert.rejects(plaza.sendCode("+14155550123"), PlazaError);
    await assert.rejects(plaza.signIn("c", "123456"), PlazaError);
    await assert.rejects(plaza.post("/shop-types", { body: { name: "Food", sort: 1 } }), PlazaError);
    await assert.rejects(plaza.patch("/users/me", { body: { nickname: "ada" } }), PlazaError);
    assert.equal(requests.length, 4);
    assert.ok(requests.every((request) => !request.headers.has("idempotency-key")));
  }
});

test("reads, PUT, DELETE, orders and queries are repeated", async () => {
  const { plaza, requests } = serve((_, number) => (number % 2 ? UNAVAILABLE() : json({})));
  await plaza.get("/feed");
  await plaza.put("/posts/{post_id}/likes/me", { path: { post_id: "1" } });
  await plaza.delete("/posts/{post_id}", { path: { post_id: "1" } });
  await plaza.post("/vouchers/{voucher_id}/orders", { path: { voucher_id: "1" } });
  await plaza.post("/reactions/query", { body: { targets: [] } });
  assert.equal(requests.length, 10);
});

test("an error that is not transient is not repeated", async () => {
  for (const status of [400, 401, 403, 404, 409, 410, 500]) {
    const { plaza, requests } = serve(() => problem(status, "x"));
    await assert.rejects(plaza.get("/feed"), { status });
    assert.equal(requests.length, 1);
  }
});

test("retries end after the last attempt, with its error", async () => {
  const { plaza, requests } = serve((_, number) => problem(503, `no-${number}`), { retry: { attempts: 3, baseMs: 1 } });
  await assert.rejects(plaza.get("/feed"), { slug: "no-3" });
  assert.equal(requests.length, 3);
});

test("delays are Retry-After plus full jitter that doubles", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(Math, "random", () => 0.5);
  const waits: number[] = [];
  const schedule = globalThis.setTimeout;
  t.mock.method(globalThis, "setTimeout", (callback: () => void, delayMs: number) => {
    if (delayMs === TIMEOUT_MS) return schedule(callback, delayMs);
    waits.push(delayMs);
    return schedule(callback, 0);
  });
  const answers = [
    problem(429, "too-many-requests", {}, { "retry-after": "2" }),
    problem(503, "unavailable"),
    new TypeError("x"),
  ];
  const options = { retry: { baseMs: 100 }, timeoutMs: TIMEOUT_MS };
  const { plaza } = serve((_, number) => answers[number - 1] ?? json({}), options);
  const health = plaza.get("/health");
  for (let turn = 0; turn < 100; turn += 1) {
    await new Promise(setImmediate);
    t.mock.timers.tick(0);
  }
  await health;
  assert.deepEqual(waits, [2050, 100, 200]);
});

test("a Retry-After beyond the longest delay ends the retries", async () => {
  const { plaza, requests } = serve(() => problem(429, "too-many-requests", {}, { "retry-after": "3600" }));
  await assert.rejects(plaza.get("/feed"), { status: 429, retryAfterS: 3600 });
  assert.equal(requests.length, 1);
});

test("a problem has its type, slug, fields and request id", async () => {
  const errors = [{ field: "body.title", detail: "too long" }];
  const { plaza } = serve(() => problem(400, "invalid-request", { errors }));
  const error = await rejectionOf(plaza.post("/posts", { body: POST }));
  assert.ok(error instanceof ProblemError && error instanceof PlazaError);
  const { type, slug, status, detail, requestId, message } = error;
  assert.deepEqual(
    { type, slug, status, detail, requestId, message, errors: error.errors },
    {
      type: "https://plaza.example/problems/invalid-request",
      slug: "invalid-request",
      status: 400,
      detail: "It is invalid-request.",
      requestId: "request-400",
      message: "It is invalid-request.",
      errors,
    },
  );
  assert.equal(error.field("title"), "too long");
  assert.equal(error.field("body"), undefined);
});

test("an error of a proxy is a problem without a type", async () => {
  const { plaza } = serve(() => answer("<html>", 500));
  await assert.rejects(plaza.get("/feed"), { type: "about:blank", status: 500, detail: "HTTP 500", errors: [] });
});

test("a refusal of the gateway itself has the slug of its status", async () => {
  const slugs = { 403: "forbidden", 404: "not-found", 413: "about:blank", 429: "too-many-requests" };
  for (const [status, slug] of Object.entries({ ...slugs, 500: "internal", 503: "unavailable" })) {
    const { plaza } = serve(() => json({ message: "Not now" }, Number(status)), { retry: { attempts: 1 } });
    await assert.rejects(plaza.get("/feed"), { slug, status: Number(status), detail: "Not now" });
  }
});

test("a response that is not JSON is a network error", async () => {
  const { plaza } = serve(() => answer("<html>Sign in to this Wi-Fi"), { retry: { attempts: 1 } });
  await assert.rejects(plaza.get("/feed"), NetworkError);
});

test("a network error has the id that the request was sent with", async () => {
  const { plaza, requests } = serve(() => new TypeError("reset"));
  const error = await rejectionOf(plaza.sendCode("+1"));
  assert.ok(error instanceof NetworkError);
  assert.ok(error.requestId);
  assert.match(error.requestId, /^c[0-9a-f]{32}$/);
  assert.equal(error.requestId, requests[0]?.headers.get("x-request-id"));
});

test("an attempt that takes too long is repeated", async () => {
  const { plaza, requests } = serve(
    ({ signal }, number) =>
      number > 1
        ? json({ status: "up" })
        : new Promise<Response>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    { timeoutMs: 20 },
  );
  assert.equal((await plaza.get("/health")).status, "up");
  assert.equal(requests.length, 2);
});

test("an aborted request throws the reason at once, also between attempts", async () => {
  const reason = new Error("the page is closed");
  const isReason = (error: unknown) =>
    "reason" in AbortSignal.prototype ? error === reason : (error as Error).name === "AbortError";
  for (const headers of [{ "retry-after": "10" }, {}] as Record<string, string>[]) {
    const ends = new AbortController();
    const { plaza, requests } = serve(
      () => {
        setImmediate(() => ends.abort(reason));
        return problem(503, "unavailable", {}, headers);
      },
      { retry: { baseMs: 60_000 } },
    );
    await assert.rejects(plaza.get("/feed", { signal: ends.signal }), isReason);
    assert.equal(requests.length, 1);
  }
  const ended = new AbortController();
  ended.abort(reason);
  const { plaza, requests } = serve(() => json({}));
  await assert.rejects(plaza.get("/feed", { signal: ended.signal }), isReason);
  assert.equal(requests.length, 0);
});

test("items asks for a page when it is needed, and keeps the parameters", async () => {
  const pages: Record<string, object> = {
    "/feed?limit=2": { items: [{ id: "4" }, { id: "3" }], next: "c1" },
    "/feed?limit=2&cursor=c1": { items: [], next: "c2" },
    "/feed?limit=2&cursor=c2": { items: [{ id: "2" }], next: null },
  };
  const { plaza, requests } = serve(({ path }) => json(pages[path]));
  const ids: string[] = [];
  for await (const post of plaza.items("/feed", { query: { limit: 2 } })) {
    ids.push(post.id);
    if (ids.length === 2) assert.equal(requests.length, 1);
  }
  assert.deepEqual(ids, ["4", "3", "2"]);
  for await (const post of plaza.items("/feed", { query: { limit: 2 } })) if (post.id === "4") break;
  assert.equal(requests.length, 4);
});

test("sign-in stores the session, and its token is sent", async () => {
  const saved: (Session | null)[] = [];
  const store = { load: () => null, save: (session: Session | null) => void saved.push(session) };
  const { plaza, requests } = serve(({ path }) => (path === "/auth/sessions" ? json(SIGNED_IN, 201) : json({})), {
    store,
  });
  const heard: unknown[] = [];
  plaza.onSession((session) => heard.push(session?.user.id));
  await plaza.signIn("c", "123456");
  await plaza.get("/feed");
  await plaza.signOut();
  await plaza.get("/health");
  assert.deepEqual(
    saved.map((session) => session?.token),
    ["t-1", undefined],
  );
  assert.deepEqual(heard, ["7", undefined]);
  assert.deepEqual(
    requests.map((request) => [request.path, request.headers.get("authorization")]),
    [
      ["/auth/sessions", null],
      ["/feed", "Bearer t-1"],
      ["/auth/sessions/current", "Bearer t-1"],
      ["/health", null],
    ],
  );
});

test("sign-out ends the session here although the API is unreachable", async () => {
  const { plaza } = serve(({ path }) => (path === "/auth/sessions" ? json(SIGNED_IN, 201) : new TypeError("reset")));
  await plaza.signIn("c", "123456");
  await assert.rejects(plaza.signOut(), NetworkError);
  assert.equal(plaza.session, null);
});

test("a 401 ends the session whose token it refused, and no newer one", async () => {
  let signIns = 0;
  const { plaza } = serve(async ({ path }) => {
    if (path === "/auth/sessions") {
      signIns += 1;
      return json({ ...SIGNED_IN, token: `t-${signIns}` }, 201);
    }
    if (path === "/feed") await plaza.signIn("c", "654321");
    return problem(401, "unauthenticated");
  });
  await plaza.signIn("c", "123456");
  await assert.rejects(plaza.get("/feed"), { status: 401 });
  assert.equal(plaza.session?.token, "t-2");
  await assert.rejects(plaza.get("/users/me"), { status: 401 });
  assert.equal(plaza.session, null);
});

test("a wrong code is no end of a session", async () => {
  const { plaza } = serve((_, number) => (number === 1 ? json(SIGNED_IN, 201) : problem(401, "code-refused")));
  await plaza.signIn("c", "123456");
  await assert.rejects(plaza.signIn("c", "000000"), { slug: "code-refused" });
  assert.equal(plaza.session?.token, "t-1");
});

test("requests wait for a session that is loaded asynchronously", async () => {
  const session: Session = { token: "t-9", expiresAt: Date.now() + 1000, user: SIGNED_IN.user };
  const store = { ...memoryStore(), load: () => Promise.resolve(session) };
  const { plaza, requests } = serve(() => json({}), { store });
  await plaza.get("/feed");
  assert.equal(requests[0]?.headers.get("authorization"), "Bearer t-9");
  const broken = serve(() => json({}), {
    store: { ...memoryStore(), load: () => Promise.reject(new Error("locked")) },
  });
  await broken.plaza.get("/health");
  assert.equal(broken.plaza.session, null);
});

/** Returns what a browser stores, for all of its tabs, and how one of them says that it stored something. */
function browser() {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  } as unknown as Storage;
  return { kept, open: () => webStore(() => storage) };
}

/** Lets `addEventListener` exist, as in a browser. Returns what sends an event. */
function listen(t: TestContext): (type: string) => void {
  const page = new EventTarget();
  const scope = globalThis as { addEventListener?: unknown };
  const before = scope.addEventListener;
  scope.addEventListener = page.addEventListener.bind(page);
  t.after(() => {
    scope.addEventListener = before;
  });
  return (type) => page.dispatchEvent(new Event(type));
}

test("webStore keeps a session over a reload, until the API ends it, and survives a refused storage", () => {
  const { kept, open } = browser();
  const session: Session = { token: "t", expiresAt: Date.now() - 1, user: SIGNED_IN.user };
  void open().save(session);
  assert.deepEqual(open().load(), session); // each use extends it there, so its time here says nothing
  void open().save(null, "ended");
  assert.equal(open().load(), null);
  void open().save(session);
  void open().save(null, "signed-out");
  assert.equal(kept.size, 0);
  const refused = webStore(() => {
    throw new Error("SecurityError");
  });
  void refused.save(session);
  assert.deepEqual(refused.load(), session);
});

test("a session that is older than its first time is sent until the API refuses it", async () => {
  const session: Session = { token: "t-old", expiresAt: Date.now() - 86_400_000, user: SIGNED_IN.user };
  const { open } = browser();
  void open().save(session);
  const { plaza, requests } = serve((_, number) => (number < 3 ? json({}) : problem(401, "unauthenticated")), {
    store: open(),
  });
  const changes: string[] = [];
  plaza.onSession((_, change) => changes.push(change));
  await plaza.get("/feed");
  await plaza.get("/feed");
  await assert.rejects(plaza.get("/feed"), { status: 401 });
  assert.deepEqual(
    requests.map((request) => request.headers.get("authorization")),
    ["Bearer t-old", "Bearer t-old", "Bearer t-old"],
  );
  assert.equal(plaza.session, null);
  assert.deepEqual(changes, ["ended"]);
});

test("sign-in, sign-out and the end of a session reach the other tabs", async (t) => {
  const send = listen(t);
  const { open } = browser();
  const here = serve(
    ({ path, method }) => {
      if (path === "/auth/sessions") return json(SIGNED_IN, 201);
      return method === "DELETE" ? json(undefined, 204) : problem(401, "unauthenticated");
    },
    { store: open() },
  ).plaza;
  const there = serve(() => json({}), { store: open() }).plaza;
  const heard: unknown[] = [];
  there.onSession((session, change) => heard.push([session?.user.id, change]));
  for (const event of ["storage", "pageshow"]) {
    await here.signIn("c", "123456");
    send(event);
    send(event);
    assert.equal(there.session?.token, "t-1");
    await here.signOut();
    send(event);
    assert.equal(there.session, null);
  }
  await here.signIn("c", "123456");
  send("storage");
  await assert.rejects(here.get("/feed"), { status: 401 });
  send("storage");
  const twice = [
    ["7", "signed-in"],
    [undefined, "signed-out"],
  ];
  assert.deepEqual(heard, [...twice, ...twice, ["7", "signed-in"], [undefined, "ended"]]);
});

test("a reaction outlives the end of its user's session, and no other user's sign-in", async () => {
  let userId = "7";
  const sent: string[] = [];
  const { plaza } = serve(({ path, method }, number) => {
    if (path === "/auth/sessions") return json({ ...SIGNED_IN, token: `t-${number}`, user: { id: userId } }, 201);
    sent.push(method);
    return sent.length === 2 ? problem(401, "unauthenticated") : json({ liked: true, likes: 1 });
  });
  const post = { id: "1", likes: 0, mine: { liked: false } };
  await plaza.signIn("c", "123456");
  await plaza.like("post", post).set(true);
  await assert.rejects(plaza.like("post", post).set(false), { status: 401 });
  await plaza.signIn("c", "123456");
  await plaza.like("post", post).set(false); // a change, although `post`, which is older, has this state
  assert.deepEqual(sent, ["PUT", "DELETE", "DELETE"]);
  const reaction = plaza.like("post", post);
  userId = "8";
  await plaza.signIn("c", "123456");
  assert.notEqual(plaza.like("post", post), reaction);
});

test("views of posts without a session send one anonymous id until it ends", async () => {
  const issued = { visitor_id: "v-1", expires_in: 60 };
  const visitor = memoryStore<Visitor>();
  const { plaza, requests } = serve((request) => json(request.path === "/visitors" ? issued : {}), { visitor });
  const view = () => plaza.get("/posts/{post_id}", { path: { post_id: "1" } });
  await Promise.all([view(), view()]);
  await plaza.get("/posts/ranking", {});
  const sent = requests.map((request) => [request.method, request.path, request.headers.get("x-visitor-id")]);
  assert.deepEqual(sent, [
    ["POST", "/visitors", null],
    ["GET", "/posts/1", "v-1"],
    ["GET", "/posts/1", "v-1"],
    ["GET", "/posts/ranking", null],
  ]);
  void visitor.save({ id: "v-1", expiresAt: Date.now() - 1 });
  issued.visitor_id = "v-2";
  await view();
  assert.equal(requests[requests.length - 1]?.headers.get("x-visitor-id"), "v-2");
});

test("a view does not fail without an anonymous id, and a session sends none", async () => {
  const visitor = memoryStore<Visitor>();
  const script = (request: Request) =>
    request.path === "/visitors" ? UNAVAILABLE() : json(request.path === "/auth/sessions" ? SIGNED_IN : {});
  const { plaza, requests } = serve(script, { visitor });
  const view = () => plaza.get("/posts/{post_id}", { path: { post_id: "1" } });
  await view();
  await view();
  assert.deepEqual(
    requests.map((request) => request.path),
    ["/visitors", "/posts/1", "/posts/1"],
  );
  void visitor.save({ id: "v-1", expiresAt: Date.now() + 1000 });
  await plaza.signIn("c", "123456");
  await view();
  assert.equal(requests[requests.length - 1]?.headers.get("x-visitor-id"), null);
});

test("buy waits for the decision at the pace of Retry-After", async () => {
  const order = { order_id: "9", voucher_id: "1", status: "pending", reason: null };
  const answers = [json(order, 202), json(order, 200, { "retry-after": "0" }), json({ ...order, status: "success" })];
  const { plaza, requests } = serve((_, number) => answers[number - 1] ?? new Error("no more"));
  assert.equal((await plaza.buy("1")).status, "success");
  assert.deepEqual(
    requests.map((request) => `${request.method} ${request.path}`),
    ["POST /vouchers/1/orders", "GET /orders/9", "GET /orders/9"],
  );
});

test("a client without an own fetch uses the one of the platform", async (t) => {
  t.mock.method(globalThis, "fetch", async () => json({ status: "up" }));
  assert.equal((await new Plaza("https://api.test").get("/health")).status, "up");
});

test("a response of a later version, with a new field and a new value, is returned as it is", async () => {
  const order = {
    order_id: "7",
    voucher_id: "8",
    status: "held",
    reason: null,
    held_until: "2030-01-01T00:00:00.000000Z",
  };
  const { plaza } = serve(() => json(order));
  const read = await plaza.get("/orders/{order_id}", { path: { order_id: "7" } });
  assert.deepEqual(read, order);
  const words: Record<string, string> = { pending: "being decided" };
  assert.equal(words[read.status] ?? read.status, "held");
});

test("a change names the version of what it was read as", async () => {
  const { plaza, requests } = serve((request, number) =>
    request.method === "GET"
      ? json({ id: "7" }, 200, { etag: number === 1 ? '"1"' : 'W/"2"' })
      : json({ id: "7" }, 200, { etag: '"3"' }),
  );
  const read = await plaza.users.getMyProfile();
  const changed = await plaza.users.updateMyProfile({ nickname: "ada" }, { ifMatch: plaza.tagOf(read) });
  const weak = await plaza.posts.get("1");
  await plaza.posts.update("1", { title: "a" }, { ifMatch: plaza.tagOf(weak) });
  await plaza.patch("/users/me", { body: { nickname: "bob" }, ifMatch: plaza.tagOf(changed) });
  const sent = requests.map((request) => request.headers.get("if-match"));
  assert.deepEqual(sent, [null, '"1"', null, null, '"3"']);
  assert.equal((await plaza.send("get", "/feed")).etag, 'W/"2"');
});
