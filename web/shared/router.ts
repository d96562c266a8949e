/** Routes in the fragment of the URL: the app needs no rewriting server. */
import { useLayoutEffect, useState } from "preact/hooks";

export interface Route {
  /** `/posts/12` */
  path: string;
  query: URLSearchParams;
}

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#/, "").split("?");
  return { path: path || "/", query: new URLSearchParams(query) };
}

export function useRoute(): Route {
  const [route, setRoute] = useState(read);
  // Before the browser runs anything else, so that no change is missed.
  useLayoutEffect(() => {
    const change = () => setRoute(read());
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return route;
}

export function go(path: string): void {
  location.hash = path;
}

/** Shows another query of the same page, without an entry in the history. */
export function replaceQuery(path: string, query: Record<string, string>): void {
  history.replaceState(null, "", `#${path}?${new URLSearchParams(query)}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Returns the parameters of a path that fits `pattern` (`/posts/:id`), or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const names = pattern.split("/");
  const parts = path.split("/");
  if (names.length !== parts.length) return null;
  const parameters: Record<string, string> = {};
  for (const [index, part] of names.entries()) {
    const value = parts[index] ?? "";
    if (part.startsWith(":")) parameters[part.slice(1)] = decodeURIComponent(value);
    else if (part !== value) return null;
  }
  return parameters;
}
