/** Numbers on screens that follow what happens: the port of a source, and the source that polls. */
import { ProblemError } from "./problems.ts";
import type { LiveRef } from "./totals.ts";

/** The totals of a target as far as they are known. */
export interface LiveTotals {
  likes?: number;
  collects?: number;
  followers?: number;
  comments?: number;
  /** Kind, such as `like` or an added one -> its total. */
  reactions?: Record<string, number>;
  /** Two reads failed in sequence, or the screen is offline. */
  stale: boolean;
}

/** An item of `GET /totals`. */
export interface TotalsItem {
  type: LiveRef["type"];
  id: string;
}

export interface LiveInput {
  /** What is watched now. */
  refs: () => readonly LiveRef[];
  /** Takes items over; late, twice or out of order. Returns whether a total changed. */
  report: (items: readonly TotalsItem[]) => boolean;
  failed: (error: unknown) => void;
}

/** What the client calls of a running source. */
export interface LiveControl {
  /** The watched targets changed, or the caller reacted to one. */
  changed(): void;
  /** The screen is visible or online again. */
  wake(): void;
  stop(): void;
}

/** Reports items of `/totals` for what is watched; it may report late, twice, out of order, or never. */
export interface LiveSource {
  start(input: LiveInput): LiveControl;
}

/** Whether the numbers are visible. */
export interface Presence {
  visible(): boolean;
  online(): boolean;
  /** True after five minutes without input. */
  idle(): boolean;
  /** Calls `listener` when one of them changes. Returns a function that ends this. */
  subscribe(listener: () => void): () => void;
}

/** Reads items of `GET /totals`, and how long they are fresh. */
export type ReadTotals = (of: string[], signal: AbortSignal) => Promise<{ items: TotalsItem[]; maxAgeS: number }>;

const PER_REQUEST = 48;
const AT_ONCE_MS = 100;
const DEFAULT_S = 5;
const MAX_FACTOR = 5;
const GROWTH = 1.5;
const IDLE_S = 60;
const MAX_BACKOFF_S = 60;
const SLOWED_MS = 600_000;
const IDLE_AFTER_MS = 300_000;

/** Polls: every `max-age` seconds while something changes, more slowly otherwise, not at all while hidden or offline. */
export function pollTotals(read: ReadTotals, presence: Presence): LiveSource {
  return { start: (input) => new Poller(read, presence, input) };
}

class Poller implements LiveControl {
  readonly #read: ReadTotals;
  readonly #presence: Presence;
  readonly #input: LiveInput;
  readonly #ends = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #isReading = false;
  #factor = 1;
  #failures = 0;
  #slowedUntil = 0;
  #periodS = DEFAULT_S;

  constructor(read: ReadTotals, presence: Presence, input: LiveInput) {
    this.#read = read;
    this.#presence = presence;
    this.#input = input;
    this.#schedule(AT_ONCE_MS);
  }

  changed(): void {
    this.#factor = 1;
    if (this.#failures === 0) this.#schedule(Math.min(this.#dueAt - Date.now(), AT_ONCE_MS));
  }

  wake(): void {
    this.#factor = 1;
    this.#schedule(Math.random() * 500);
  }

  stop(): void {
    this.#ends.abort();
    clearTimeout(this.#timer);
  }

  #schedule(delayMs: number): void {
    if (this.#ends.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#dueAt = Date.now() + delayMs;
    this.#timer = setTimeout(() => void this.#poll(), Math.max(0, delayMs));
  }

  async #poll(): Promise<void> {
    const presence = this.#presence;
    const input = this.#input;
    const refs = input.refs();
    this.#dueAt = Number.POSITIVE_INFINITY;
    if (this.#isReading || refs.length === 0 || !presence.visible() || !presence.online()) return;
    this.#isReading = true;
    let delayMs: number;
    try {
      let changed = false;
      for (const of of requestsOf(refs)) {
        const { items, maxAgeS } = await this.#read(of, this.#ends.signal);
        if (this.#ends.signal.aborted) return;
        this.#periodS = maxAgeS;
        changed = input.report(items) || changed;
      }
      this.#failures = 0;
      this.#factor = changed ? 1 : Math.min(MAX_FACTOR, this.#factor * GROWTH);
      const slowed = Date.now() < this.#slowedUntil ? 2 : 1;
      const periodS = presence.idle() ? Math.max(IDLE_S, this.#periodS) : this.#periodS * this.#factor;
      delayMs = periodS * slowed * 1000;
    } catch (error) {
      if (this.#ends.signal.aborted) return;
      this.#failures += 1;
      if (this.#failures > 1) input.failed(error);
      const refused = error instanceof ProblemError ? error : undefined;
      if (refused?.status === 429) this.#slowedUntil = Date.now() + SLOWED_MS;
      const backoffS = Math.min(MAX_BACKOFF_S, DEFAULT_S * 2 ** (this.#failures - 1));
      delayMs = ((refused?.retryAfterS ?? 0) + Math.random() * backoffS) * 1000;
    }
    this.#isReading = false;
    this.#schedule(Math.min(delayMs, this.#dueAt - Date.now()));
  }
}

/** Returns the references of each request: of one type, sorted, so that readers of one post ask for the same URL. */
function requestsOf(refs: readonly LiveRef[]): string[][] {
  const byType = new Map<string, string[]>();
  for (const { type, id } of refs) byType.set(type, [...(byType.get(type) ?? []), `${type}:${id}`]);
  const requests: string[][] = [];
  for (const all of byType.values()) {
    all.sort();
    for (let start = 0; start < all.length; start += PER_REQUEST) requests.push(all.slice(start, start + PER_REQUEST));
  }
  return requests;
}

interface Page {
  document?: { hidden: boolean } & EventTarget;
  addEventListener?: EventTarget["addEventListener"];
}

/** The presence of a page of a browser; elsewhere always visible and online. */
export function pagePresence(page: Page = globalThis as Page): Presence {
  let isOnline = true;
  let inputAt = Date.now();
  return {
    visible: () => page.document?.hidden !== true,
    online: () => isOnline,
    idle: () => page.document !== undefined && Date.now() - inputAt > IDLE_AFTER_MS,
    subscribe(listener) {
      const connected = (value: boolean) => () => {
        isOnline = value;
        listener();
      };
      const touched = () => {
        const wasIdle = Date.now() - inputAt > IDLE_AFTER_MS;
        inputAt = Date.now();
        if (wasIdle) listener();
      };
      const { document } = page;
      const events: [EventTarget | Page, string, () => void][] = [
        [page, "online", connected(true)],
        [page, "offline", connected(false)],
        [page, "pointerdown", touched],
        [page, "keydown", touched],
        [page, "scroll", touched],
      ];
      if (document !== undefined) events.push([document, "visibilitychange", listener]);
      const ends = new AbortController();
      for (const [target, name, call] of events) target.addEventListener?.(name, call, ends);
      return () => ends.abort();
    },
  };
}
