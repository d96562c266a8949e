/** An API of the tests: it answers each request with the next scripted response. */
import { Plaza, type PlazaOptions } from "../src/index.ts";

export interface Request {
  method: string;
  path: string;
  headers: Headers;
  body: unknown;
  signal: AbortSignal;
}
type Answer = Response | Error | Promise<Response>;
export type Script = (request: Request, number: number) => Answer;

export interface Api {
  plaza: Plaza;
  requests: Request[];
}

/** Returns a client, and the requests it sends; `script` answers them. */
export function serve(script: Script, options: PlazaOptions = {}): Api {
  const requests: Request[] = [];
  const fetch = async (url: string | URL | globalThis.Request, init: RequestInit = {}) => {
    const request = {
      method: init.method ?? "GET",
      path: String(url).replace("https://api.test", ""),
      headers: new Headers(init.headers),
      body: init.body === undefined ? undefined : JSON.parse(String(init.body)),
      signal: init.signal ?? new AbortController().signal,
    };
    requests.push(request);
    const answer = await script(request, requests.length);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const plaza = new Plaza("https://api.test/", { fetch, retry: { baseMs: 1 }, ...options });
  return { plaza, requests };
}

/** Returns what the client reads of a response; a `Response` of Node needs parts of a newer engine. */
export function answer(text: string, status = 200, headers: Record<string, string> = {}): Response {
  const response = { status, ok: status < 300, headers: new Headers(headers), text: async () => text };
  return response as unknown as Response;
}

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  const text = body === undefined ? "" : JSON.stringify(body);
  return answer(text, status, { "x-request-id": `request-${status}`, ...headers });
}

export function problem(
  status: number,
  slug: string,
  more: object = {},
  headers: Record<string, string> = {},
): Response {
  const type = `https://plaza.example/problems/${slug}`;
  return json({ type, title: slug, status, detail: `It is ${slug}.`, ...more }, status, headers);
}

export const SIGNED_IN = { token: "t-1", expires_in: 60, user: { id: "7", nickname: "ada", avatar: null } };

/** A promise and the functions that end it. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  return { promise, resolve, reject };
}
