/**
 * Runs the built CommonJS modules in a context that has only what React Native has of a browser:
 * `node test/old-host.ts`. Prints what it received.
 */
import { readFileSync } from "node:fs";
import { createContext, runInContext } from "node:vm";

const BUILT = new URL("../dist/cjs/", import.meta.url);
const pages = [
  { items: [{ id: "4" }], next: "c1" },
  { items: [{ id: "3" }], next: null },
  { liked: true, likes: 1 },
];
const sent: string[] = [];
async function fetch(url: string, { method }: { method: string }) {
  sent.push(`${method} ${url}`);
  const text = JSON.stringify(pages.shift());
  return { status: 200, ok: true, headers: new Headers(), text: async () => text };
}
const context = createContext({ fetch, AbortController, setTimeout, clearTimeout, console });
const loaded = new Map<string, { exports: object }>();

function load(name: string): object {
  const known = loaded.get(name);
  if (known !== undefined) return known.exports;
  const module = { exports: {} };
  loaded.set(name, module);
  const wrapped = runInContext(
    `(function (module, exports, require) {${readFileSync(new URL(name, BUILT), "utf8")}\n})`,
    context,
    { filename: name },
  );
  wrapped(module, module.exports, (other: string) => load(other.replace("./", "")));
  return module.exports;
}

context.client = load("index.js");
const journey = `(async () => {
  const plaza = new client.Plaza("https://api.test");
  const ids = [];
  for await (const post of plaza.feed.listPosts({ limit: 1 })) ids.push(post.id);
  const like = plaza.like("post", { id: "4" });
  const { active, total } = await like.set(true);
  const error = await plaza.posts.get().catch((reason) => reason);
  return JSON.stringify({ ids, active, total, isPlazaError: error instanceof client.PlazaError });
})()`;
console.log(await runInContext(journey, context));
console.log(sent.join("\n"));
