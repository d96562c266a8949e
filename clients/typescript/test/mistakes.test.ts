import assert from "node:assert/strict";
import { test } from "node:test";
import { NetworkError, Plaza, PlazaError, ProblemError } from "../src/index.ts";
import { json, serve } from "./api.ts";

/** A mistake of the caller: no request, no retry, and no word about the connection. */
const isMistake = (text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof PlazaError && !(error instanceof NetworkError || error instanceof ProblemError));
  assert.match(error.message, text);
  assert.doesNotMatch(error.message, /connection/i);
  return true;
};

test("a missing parameter of a path is named, and nothing is sent", async () => {
  const { plaza, requests } = serve(() => json({}));
  for (const post_id of [undefined, null, "", {}]) {
    const path = { post_id } as unknown as { post_id: string };
    await assert.rejects(plaza.get("/posts/{post_id}", { path }), isMistake(/^GET \/posts\/\{post_id\} needs post_id/));
  }
  await assert.rejects(
    plaza.posts.like(undefined as unknown as string),
    isMistake(/needs post_id, which is undefined/),
  );
  assert.equal(requests.length, 0);
});

test("a wrong URL is refused by the constructor", () => {
  for (const url of [
    undefined,
    null,
    7,
    "",
    "api.example",
    "localhost:3000",
    "htp://api",
    "https://",
    "https://a?b",
    "/api",
  ]) {
    assert.throws(() => new Plaza(url as string), isMistake(/^The URL of Plaza is /), String(url));
  }
  for (const url of ["https://api.example", "http://127.0.0.1:3000/", "https://api.example/v1/"]) new Plaza(url);
});

test("a page may name the API by its path", async (t) => {
  Object.assign(globalThis, { location: { origin: "https://api.test" } });
  t.after(() => Reflect.deleteProperty(globalThis, "location"));
  for (const [url, expected] of [
    ["", "/health"],
    ["/api/", "/api/health"],
  ] as const) {
    const sent: string[] = [];
    const fetch = async (target: unknown) => {
      sent.push(String(target));
      return json({});
    };
    await new Plaza(url, { fetch }).get("/health");
    assert.deepEqual(sent, [expected]);
  }
  assert.throws(() => new Plaza("//evil.example"), isMistake(/evil/));
});

test("limits that no timer has are refused", async () => {
  for (const timeoutMs of [Number.POSITIVE_INFINITY, Number.NaN, 0, -1, 2 ** 31, "9"] as number[]) {
    assert.throws(() => serve(() => json({}), { timeoutMs }), isMistake(/^timeoutMs is /));
    await assert.rejects(serve(() => json({})).plaza.get("/health", { timeoutMs }), isMistake(/^timeoutMs is /));
  }
  assert.throws(() => serve(() => json({}), { retry: { attempts: 0 } }), isMistake(/^retry.attempts is 0/));
  assert.throws(() => serve(() => json({}), { retry: { baseMs: -1 } }), isMistake(/^retry.baseMs is -1/));
});

test("a key, a body or a text that cannot be sent is no lost connection", async () => {
  const { plaza, requests } = serve(() => json({}, 201));
  const post = { kind: "note", title: "Hello", body: "First" } as const;
  const cyclic: Record<string, unknown> = { ...post };
  cyclic.body = cyclic;
  await assert.rejects(plaza.posts.create(post, { idempotencyKey: "schön" }), isMistake(/^idempotencyKey/));
  await assert.rejects(plaza.posts.create(cyclic as unknown as typeof post), isMistake(/JSON/));
  await assert.rejects(plaza.posts.get("\ud800"), isMistake(/half of a character/));
  assert.equal(requests.length, 0);
});

test("a mistake in the fetch of the engine or of the caller is not blamed on the connection", async () => {
  for (const error of [
    new ReferenceError("Request is not defined"),
    new TypeError("AbortSignal.any is not a function"),
    new TypeError("undefined is not an object (evaluating 'a.b')"),
    new TypeError("Cannot read properties of undefined (reading 'b')"),
    new TypeError("Failed to parse URL from x"),
    new TypeError("Failed to execute 'fetch' on 'Window': Invalid name"),
  ]) {
    const { plaza, requests } = serve(() => error);
    await assert.rejects(plaza.get("/health"), isMistake(/^The request could not be sent: /));
    assert.equal(requests.length, 1);
  }
});

test("each engine's words for a lost connection are a NetworkError, and repeated", async () => {
  for (const error of [
    new TypeError("Failed to fetch"),
    new TypeError("Load failed"),
    new TypeError("fetch failed"),
    new TypeError("Network request failed"),
    new TypeError("NetworkError when attempting to fetch resource."),
    new TypeError("Origin https://a.example is not allowed by Access-Control-Allow-Origin."),
    new TypeError("The Internet connection appears to be offline."),
    new TypeError("error sending request for url (https://api.test/health)"),
    new Error("socket hang up"),
  ]) {
    const { plaza, requests } = serve(() => error, { retry: { attempts: 2, baseMs: 1 } });
    await assert.rejects(plaza.get("/health"), NetworkError, error.message);
    assert.equal(requests.length, 2);
  }
});

test("an engine without fetch is asked to pass one", async (t) => {
  const { fetch } = globalThis;
  t.after(() => Object.assign(globalThis, { fetch }));
  Reflect.deleteProperty(globalThis, "fetch");
  await assert.rejects(new Plaza("https://api.test").get("/health"), isMistake(/option `fetch`/));
});

test("a response without a body is one", async () => {
  const { plaza } = serve(() => json(undefined));
  assert.equal(await plaza.get("/health"), undefined);
});
