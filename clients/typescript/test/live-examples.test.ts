/** The code that docs/live-numbers.md prints, as it is printed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { LiveInput, LiveTotals, Plaza, TotalsItem } from "../src/index.ts";
import { json, serve } from "./api.ts";

const PAGE = readFileSync(`${import.meta.dirname}/../../../docs/live-numbers.md`, "utf8");

/** Imports an example; `react` is what it imports from React. */
async function load<T>(name: string, react = ""): Promise<T> {
  const [, code = ""] = new RegExp(`\`\`\`js\n(// ${name}[\\s\\S]*?)\`\`\``).exec(PAGE) ?? [];
  assert.notEqual(code, "");
  const alone = code.replace(/^import .* from "react";$/m, react);
  return (await import(`data:text/javascript,${encodeURIComponent(alone)}`)) as T;
}

/** Returns a client whose totals the test reports. */
function follow() {
  let input: LiveInput | undefined;
  let stopped = 0;
  const live = () => ({
    start(given: LiveInput) {
      input = given;
      return { changed: () => undefined, wake: () => undefined, stop: () => void stopped++ };
    },
  });
  const { plaza } = serve(() => json({}), { live });
  const report = (likes: number, likes_at: string) =>
    input?.report([{ type: "post", id: "12", likes, likes_at } as TotalsItem]);
  return { plaza, report, stopped: () => stopped, fail: () => input?.failed(new TypeError("Failed to fetch")) };
}

test("the number of a page moves, does not go back, and says that it may be old", async () => {
  type LiveLikes = (element: object, plaza: Plaza, type: string, id: string) => () => void;
  const { liveLikes } = await load<{ liveLikes: LiveLikes }>("live-likes.js");
  const { plaza, report, stopped, fail } = follow();
  const element = { textContent: "", title: "" };
  const stop = liveLikes(element, plaza, "post", "12");
  report(42, "1b");
  assert.deepEqual(element, { textContent: 42, title: "" });
  report(40, "1a");
  assert.equal(element.textContent, 42);
  fail();
  assert.deepEqual(element, { textContent: 42, title: "This number may be old" });
  stop();
  assert.equal(stopped(), 1);
});

test("the hook of React has the newest totals, and ends with its component", async () => {
  type UseTotals = (plaza: Plaza, type: string, id: string) => LiveTotals;
  const hooks: { state?: LiveTotals; end?: () => void } = {};
  Object.assign(globalThis, {
    exampleHooks: {
      useState(first: LiveTotals) {
        const set = (next: LiveTotals) => {
          hooks.state = next;
        };
        return [hooks.state ?? first, set];
      },
      useEffect(effect: () => () => void) {
        hooks.end ??= effect();
      },
    },
  });
  const { useTotals } = await load<{ useTotals: UseTotals }>(
    "use-totals.js",
    "const { useEffect, useState } = globalThis.exampleHooks;",
  );
  const { plaza, report, stopped } = follow();
  const render = () => useTotals(plaza, "post", "12");
  assert.deepEqual(render(), { stale: false });
  report(42, "1b");
  report(41, "1a");
  assert.deepEqual(render(), { likes: 42, reactions: { like: 42 }, stale: false });
  hooks.end?.();
  assert.equal(stopped(), 1);
  Reflect.deleteProperty(globalThis, "exampleHooks");
});
