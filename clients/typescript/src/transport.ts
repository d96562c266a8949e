/** One request: its attempts, timeouts and delays. */
import { NetworkError, PlazaError, ProblemError } from "./problems.ts";

export interface RetryOptions {
  /** Maximum number of attempts, the first one included. */
  attempts: number;
  /** Upper bound of the delay before the second attempt; it doubles with each attempt. */
  baseMs: number;
  /** Upper bound of each delay. A longer `Retry-After` ends the retries. */
  maxDelayMs: number;
}

export const RETRY: RetryOptions = { attempts: 4, baseMs: 200, maxDelayMs: 20_000 };
export const TIMEOUT_MS = 15_000;
const RETRIED_STATUS = new Set([429, 502, 503, 504]);
/** Errors that no network causes: by their names, and a TypeError by its text. `fetch` throws a TypeError for both. */
const BUG_NAMES = /^(Eval|Range|Reference|Syntax|URI)Error$/;
const BUG_TEXTS =
  /is not (an?|defined|iterable)\b|undefined|^(Window\.fetch|Cannot |Failed to execute|Failed to parse|Invalid )/;

export interface Attempts {
  fetch: typeof fetch;
  url: string;
  init: RequestInit & { headers: Record<string, string> };
  retry: RetryOptions;
  timeoutMs: number;
  signal: AbortSignal | undefined;
  /** False for a request whose repetition could have a second effect. */
  repeatable: boolean;
  /** Called before each attempt. */
  onAttempt: () => void;
}

/** A response that is no problem. */
export interface RawReply {
  status: number;
  body: unknown;
  requestId: string | undefined;
  retryAfterS: number | undefined;
  maxAgeS: number | undefined;
  etag: string | undefined;
}

/**
 * Sends a request until it has a response that is final. Throws ProblemError, NetworkError, or the
 * reason of `signal`.
 */
export async function sendWithRetries(attempts: Attempts): Promise<RawReply> {
  const { retry, signal, repeatable } = attempts;
  for (let attempt = 1; ; attempt += 1) {
    if (signal?.aborted) throw reasonOf(signal);
    attempts.onAttempt();
    try {
      return await sendOnce(attempts);
    } catch (error) {
      if (signal?.aborted) throw reasonOf(signal);
      const delayMs = repeatable && attempt < retry.attempts ? delayOf(error, attempt, retry) : null;
      if (delayMs === null) throw error;
      await sleep(delayMs, signal);
    }
  }
}

/** Waits; throws the reason of `signal` as soon as it is aborted. */
export function sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      if (signal !== undefined) reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, delayMs);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Returns the delay before the next attempt; null when the error is final. */
function delayOf(error: unknown, attempt: number, retry: RetryOptions): number | null {
  let leastMs = 0;
  if (error instanceof ProblemError) {
    if (!RETRIED_STATUS.has(error.status)) return null;
    leastMs = (error.retryAfterS ?? 0) * 1000;
  } else if (!(error instanceof NetworkError)) return null;
  if (leastMs > retry.maxDelayMs) return null;
  return leastMs + Math.random() * Math.min(retry.maxDelayMs, retry.baseMs * 2 ** (attempt - 1));
}

/** Returns why a signal was aborted; an AbortError in an engine whose signals have no reason. */
function reasonOf(signal: AbortSignal): unknown {
  if (signal.reason !== undefined) return signal.reason;
  return Object.assign(new Error("The request was aborted."), { name: "AbortError" });
}

/** Returns whether an error of `fetch` is a mistake in a program, and not of the network. */
function isBug(error: unknown): boolean {
  const { name, message } = Object(error) as Error;
  return BUG_NAMES.test(name) || (name === "TypeError" && BUG_TEXTS.test(message));
}

async function sendOnce({ fetch, url, init, signal, timeoutMs }: Attempts): Promise<RawReply> {
  const sentId = init.headers["x-request-id"];
  const ends = new AbortController();
  const abort = () => ends.abort(signal?.reason);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    ends.abort();
  }, timeoutMs);
  signal?.addEventListener("abort", abort);
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, { ...init, signal: ends.signal });
    text = await response.text();
  } catch (error) {
    if (isLate) throw new NetworkError(`There was no response within ${timeoutMs} ms.`, sentId, error);
    if (isBug(error)) throw new PlazaError(`The request could not be sent: ${(error as Error).message}`, sentId, error);
    throw new NetworkError("The connection failed.", sentId, error);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
  const { status, headers, ok } = response;
  const requestId = headers.get("x-request-id") ?? sentId;
  const wait = Number.parseFloat(headers.get("retry-after") ?? "");
  const retryAfterS = Number.isNaN(wait) ? undefined : wait;
  const maxAge = Number.parseInt(/max-age=(\d+)/.exec(headers.get("cache-control") ?? "")?.[1] ?? "", 10);
  const maxAgeS = Number.isNaN(maxAge) ? undefined : maxAge;
  let body: unknown;
  try {
    body = text === "" ? undefined : JSON.parse(text);
  } catch (error) {
    if (ok) throw new NetworkError("The response is not JSON.", requestId, error);
  }
  if (!ok) throw new ProblemError(status, body, requestId, retryAfterS);
  const etag = headers.get("etag") ?? undefined;
  return { status, body, requestId, retryAfterS, maxAgeS, etag };
}
