/**
 * Routes in the fragment of the URL: the app needs no rewriting server. Each entry of the history
 * has a key, under which its lists and its scroll position are kept.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Route {
  /** `/posts/12` */
  path: string;
  query: URLSearchParams;
  /** The key of the entry of the history. */
  entry: string;
}

const MAX_POSITIONS = 200;
/** What a user does who chooses another position. */
const MOVES = ["wheel", "touchstart", "keydown", "pointerdown"] as const;
const positions = new Map<string, number>();
let entries = 0;
// The page restores what a list showed; before that the browser can only scroll what is not there.
history.scrollRestoration = "manual";

/** Returns the key of the entry that is shown; an entry that has none gets one. */
export function currentEntry(): string {
  const stored = (history.state as { entry?: string } | null)?.entry;
  if (stored !== undefined) return stored;
  entries += 1;
  const entry = `${Date.now().toString(36)}-${entries}`;
  history.replaceState({ entry }, "");
  return entry;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#/, "").split("?");
  return { path: path || "/", query: new URLSearchParams(query), entry: currentEntry() };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  const latest = useRef(route);
  // Before the browser runs anything else, so that no change is missed.
  useLayoutEffect(() => {
    const change = () => {
      const now = read();
      if (now.entry !== latest.current.entry) savePosition(latest.current.entry);
      latest.current = now;
      setRoute(now);
    };
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

/** Remembers how far an entry is scrolled. It still is: the page of the next one is not drawn. */
function savePosition(entry: string): void {
  positions.delete(entry);
  positions.set(entry, scrollY);
  const [oldest] = positions.keys();
  if (positions.size > MAX_POSITIONS && oldest !== undefined) positions.delete(oldest);
}

/** Scrolls back to where an entry was, also while its pictures arrive; a new page begins at its top. */
export function useScrollPosition({ entry, path }: Route): void {
  const shown = useRef("");
  useLayoutEffect(() => {
    const top = positions.get(entry) ?? (shown.current === path ? undefined : 0);
    shown.current = path;
    if (top === undefined) return;
    scrollTo(0, top);
    if (scrollY >= top) return;
    const grows = new ResizeObserver(() => {
      scrollTo(0, top);
      if (scrollY >= top) end();
    });
    const end = () => {
      grows.disconnect();
      for (const type of MOVES) removeEventListener(type, end);
    };
    for (const type of MOVES) addEventListener(type, end, { passive: true });
    grows.observe(document.body);
    return end;
  }, [entry]);
}

/** Returns whether an entry was left, so that Back or Forward shows it again. */
export function wasLeft(entry: string): boolean {
  return positions.has(entry);
}

export function go(path: string): void {
  location.hash = path;
}

/** Shows another query of the same page, without an entry in the history. */
export function replaceQuery(path: string, query: Record<string, string>): void {
  history.replaceState(history.state, "", `#${path}?${new URLSearchParams(query)}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Reads the shown page again, as if its link had been followed from another page. */
export function refresh(): void {
  history.replaceState(null, "");
  dispatchEvent(new HashChangeEvent("hashchange"));
  scrollTo(0, 0);
  document.querySelector("h1")?.focus({ preventScroll: true });
}

/** Returns the parameters of a path that fits `pattern` (`/posts/:id`), or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const names = pattern.split("/");
  const parts = path.split("/");
  if (names.length !== parts.length) return null;
  const parameters: Record<string, string> = {};
  for (const [index, part] of names.entries()) {
    const value = decode(parts[index] ?? "");
    if (value === null) return null;
    if (part.startsWith(":")) parameters[part.slice(1)] = value;
    else if (part !== value) return null;
  }
  return parameters;
}

/** Returns a part of a path without its escapes; null where one is broken (`%`). */
function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}
