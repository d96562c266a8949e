/** What a caller passes, checked before a request is sent. Each check throws a PlazaError. */
import { PlazaError } from "./problems.ts";
import type { RetryOptions } from "./transport.ts";

const MAX_TIMER_MS = 2 ** 31 - 1;

interface Limits {
  timeoutMs?: number;
  retry?: Partial<RetryOptions>;
  idempotencyKey?: string;
}

interface Parameters {
  path?: Record<string, unknown>;
  query?: Record<string, unknown>;
}

/** Returns the URL of a deployment without its last slash. A page may name it without an origin. */
export function checkBaseUrl(url: string): string {
  const isRelative = typeof location === "object" && /^(\/(?!\/)|$)/.test(url);
  if (typeof url !== "string" || !(isRelative || /^https?:\/\/[^/?#\s]+[^?#\s]*$/i.test(url))) {
    throw new PlazaError(`The URL of Plaza is ${show(url)}; it has to begin with https:// or http://.`);
  }
  return url.replace(/\/+$/, "");
}

export function checkLimits({ timeoutMs, retry = {}, idempotencyKey }: Limits): void {
  const { attempts, baseMs, maxDelayMs } = retry;
  checkNumber("timeoutMs", timeoutMs, 1);
  checkNumber("retry.attempts", attempts, 1);
  checkNumber("retry.baseMs", baseMs, 0);
  checkNumber("retry.maxDelayMs", maxDelayMs, 0);
  if (idempotencyKey !== undefined && !/^[!-~]{1,128}$/.test(idempotencyKey)) {
    throw new PlazaError("idempotencyKey has to be 1 to 128 visible ASCII characters.");
  }
}

function checkNumber(name: string, value: number | undefined, least: number): void {
  if (value === undefined || (typeof value === "number" && value >= least && value <= MAX_TIMER_MS)) return;
  throw new PlazaError(`${name} is ${show(value)}; it has to be a number from ${least} to ${MAX_TIMER_MS}.`);
}

/** Returns a path of the contract with its parameters, encoded. Undefined and null are no query. */
export function expand(method: string, path: string, { path: given = {}, query = {} }: Parameters): string {
  const expanded = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = given[name];
    if ((typeof value === "string" && value !== "") || typeof value === "number") return encode(value);
    throw new PlazaError(`${method.toUpperCase()} ${path} needs ${name}, which is ${show(value)}.`);
  });
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const search = pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  return search === "" ? expanded : `${expanded}?${search}`;
}

/** Returns a body as JSON. */
export function serialize(body: unknown): string | undefined {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw new PlazaError("The body cannot be written as JSON.", undefined, error);
  }
}

function encode(value: unknown): string {
  try {
    return encodeURIComponent(String(value));
  } catch (error) {
    throw new PlazaError("A parameter has half of a character.", undefined, error); // a lone surrogate
  }
}

function show(value: unknown): string {
  return typeof value === "string" ? `"${value}"` : String(value);
}
