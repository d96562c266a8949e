/** The code that docs/guides/like-button.md prints, as it is printed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

type Answer = { status: number; body?: object; retryAfter?: string } | null;
interface Button {
  textContent: string;
  title: string;
  onclick: () => void;
  setAttribute: (name: string, value: boolean) => void;
}
const GUIDE = readFileSync(`${import.meta.dirname}/../../../docs/guides/like-button.md`, "utf8");
const [, code = ""] = /```js\n(\/\/ like-button\.js[\s\S]*?)```/.exec(GUIDE) ?? [];
const { likeButton } = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as {
  likeButton: (button: Button, post: object, url: string, token?: string) => void;
};
const POST = { id: "12", likes: 41, mine: { liked: false, collected: false } };
const LIKED = { liked: true, likes: 42, changed: true, exact: true };

/** Makes a button of the guide in a page whose requests get `answers`, the last of them again and again. */
function open(answers: Answer[], { post = POST as object, token = "t", onLine = true, jitter = 0.5 } = {}) {
  const sent: string[] = [];
  const waits: number[] = [];
  const listeners: (() => void)[] = [];
  const page = { onLine, visited: "" };
  const globals = {
    navigator: page,
    location: { assign: (url: string) => (page.visited = url) },
    addEventListener: (_: string, listener: () => void) => listeners.push(listener),
    setTimeout: (done: () => void, delayMs: number) => {
      waits.push(delayMs);
      setImmediate(done);
    },
    fetch: async (url: string, { method }: { method: string }) => {
      sent.push(`${method} ${url}`);
      const answer = answers[Math.min(sent.length, answers.length) - 1] ?? null;
      if (answer === null) throw new TypeError("Failed to fetch");
      const { status, body, retryAfter = null } = answer;
      return { status, ok: status < 300, headers: { get: () => retryAfter }, json: async () => body };
    },
  };
  const before = new Map(Object.keys(globals).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
  for (const [name, value] of Object.entries(globals)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  const random = Math.random;
  Math.random = () => jitter;
  const restore = () => {
    Math.random = random;
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(globalThis, name);
      else Object.defineProperty(globalThis, name, descriptor);
    }
  };
  const button = { textContent: "", title: "", onclick: () => undefined, setAttribute: () => undefined } as Button;
  likeButton(button, post, "https://api.test", token);
  return { button, sent, waits, page, listeners, restore };
}

const settle = async () => {
  for (let turn = 0; turn < 100; turn += 1) await new Promise(setImmediate);
};

test("the guide's button shows a click at once, and the server's total", async (t) => {
  const { button, sent, restore } = open([{ status: 200, body: LIKED }]);
  t.after(restore);
  assert.equal(button.textContent, "♡ 41");
  button.onclick();
  assert.equal(button.textContent, "♥ 42");
  await settle();
  assert.deepEqual(sent, ["PUT https://api.test/posts/12/likes/me"]);
});

test("the guide's button is shown without a session, and leads to the sign-in", async (t) => {
  const { button, sent, page, restore } = open([], { post: { ...POST, mine: null }, token: "" });
  t.after(restore);
  assert.equal(button.textContent, "♡ 41");
  button.onclick();
  await settle();
  assert.deepEqual([page.visited, sent.length, button.textContent], ["/sign-in", 0, "♡ 41"]);
});

test("the guide's button backs off, gives up, and says so", async (t) => {
  const { button, sent, waits, restore } = open([null]);
  t.after(restore);
  button.onclick();
  await settle();
  assert.equal(sent.length, 5);
  assert.deepEqual(waits, [1000, 2000, 4000, 8000]);
  assert.equal(button.textContent, "♡ 41");
  assert.match(button.title, /not saved/);
});

test("the guide's button waits as long as the server asks", async (t) => {
  const { button, waits, restore } = open([
    { status: 429, retryAfter: "3" },
    { status: 200, body: LIKED },
  ]);
  t.after(restore);
  button.onclick();
  await settle();
  assert.deepEqual([waits, button.textContent], [[4000], "♥ 42"]);
});

test("the guide's button sends nothing while there is no network", async (t) => {
  const { button, sent, page, listeners, restore } = open([{ status: 200, body: LIKED }], { onLine: false });
  t.after(restore);
  button.onclick();
  await settle();
  assert.equal(sent.length, 0);
  page.onLine = true;
  for (const listener of listeners) listener();
  await settle();
  assert.deepEqual([sent.length, button.textContent], [1, "♥ 42"]);
});

test("the guide's button takes a refused like back", async (t) => {
  const { button, sent, restore } = open([{ status: 401 }]);
  t.after(restore);
  button.onclick();
  await settle();
  assert.deepEqual([sent.length, button.textContent, button.title], [1, "♡ 41", "Sign in to like this."]);
});
