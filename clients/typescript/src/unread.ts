/** The unread counter of the caller: how many notifications are new, the same on all devices and tabs. */
import type { Schemas } from "./operations.ts";

export interface UnreadState {
  /** Notifications with something new, exact and without a cap; null until it is known. */
  readonly unread: number | null;
  /** Orders states: the greater text is the newer one. */
  readonly at: string | null;
  /** True while the last read failed: `unread` is of an earlier one. */
  readonly stale: boolean;
}

export type NotificationPage = Schemas["NotificationsResponse"];
export type Notification = Schemas["NotificationResponse"];
export type NotificationRef = Schemas["NotificationRef"];

/** What an unread counter needs of its client. */
export interface UnreadSource {
  read(): Promise<Schemas["UnreadResponse"]>;
  mark(body: Schemas["MarkReadRequest"]): Promise<Schemas["MarkReadResponse"]>;
  userId(): string | undefined;
}

type Known = Pick<Schemas["UnreadResponse"], "unread" | "at">;

export const EVERY_MS = 15_000;
const MAX_DELAY_MS = 60_000;
const CHANNEL = "plaza-unread";
const UNKNOWN: UnreadState = { unread: null, at: null, stale: false };

/**
 * Follows the unread counter while it has a subscriber: reads it each 15 s while the page is visible, at once
 * when it is shown or connected again, and sends it to the other tabs. An answer that is older than
 * what is known is dropped, so the number never goes back.
 */
export class Unread {
  readonly #source: UnreadSource;
  readonly #listeners = new Set<(state: UnreadState) => void>();
  #known: Known | null = null;
  #state = UNKNOWN;
  #isStale = false;
  /** What marks that are not answered yet will read. */
  #marking = 0;
  #failures = 0;
  #isReading = false;
  #userId: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #channel: BroadcastChannel | undefined;

  constructor(source: UnreadSource) {
    this.#source = source;
    this.#userId = source.userId();
  }

  /** The current state; the same object until it changes. */
  get state(): UnreadState {
    return this.#state;
  }

  /** Calls `listener` after each change, and follows the unread counter. Returns a function that ends this. */
  subscribe(listener: (state: UnreadState) => void): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#start();
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#stop();
    };
  }

  /** Reads the unread counter now, if it has a subscriber and the page is visible. */
  wake(): void {
    void this.#poll();
  }

  /** Takes what an answer says: a page of the list, or a response to another request. */
  observe(answer: Known): void {
    if (this.#take(answer)) this.#send(answer);
  }

  /**
   * Marks what a page displayed as read: `groups`, or all notifications. What is new since stays new.
   * The number changes at once, and back if the API refuses it.
   */
  async markRead(page: Pick<NotificationPage, "at" | "items">, groups?: NotificationRef[]): Promise<UnreadState> {
    const isMarked = (item: Notification) => groups === undefined || groups.some((ref) => isSame(ref, item));
    const count =
      groups === undefined ? (this.#known?.unread ?? 0) : page.items.filter((i) => !i.read && isMarked(i)).length;
    this.#marking += count;
    this.#publish();
    let counted = count;
    try {
      for (;;) {
        const body = { at: page.at, ...(groups !== undefined && { groups }) };
        const answer = await this.#source.mark(body);
        this.#marking -= counted;
        counted = 0;
        this.observe(answer);
        if (answer.left === 0) return this.#state;
      }
    } finally {
      this.#marking -= counted;
      this.#publish();
    }
  }

  /** Forgets the unread counter of a user who is no longer signed in. */
  follow(userId: string | undefined): void {
    if (userId === this.#userId) return;
    this.#userId = userId;
    this.#known = null;
    this.#isStale = false;
    this.#failures = 0;
    this.#publish();
    this.wake();
  }

  #start(): void {
    if (typeof BroadcastChannel === "function" && typeof document === "object") {
      this.#channel = new BroadcastChannel(CHANNEL);
      this.#channel.onmessage = ({ data }: MessageEvent<Known & { userId: string }>) => {
        if (data.userId === this.#userId) this.#take(data);
      };
    }
    globalThis.document?.addEventListener("visibilitychange", this.#show);
    globalThis.addEventListener?.("online", this.#show);
    this.wake();
  }

  #stop(): void {
    clearTimeout(this.#timer);
    this.#channel?.close();
    this.#channel = undefined;
    globalThis.document?.removeEventListener("visibilitychange", this.#show);
    globalThis.removeEventListener?.("online", this.#show);
  }

  #show = (): void => this.wake();

  async #poll(): Promise<void> {
    clearTimeout(this.#timer);
    const userId = this.#userId;
    if (this.#isReading || this.#listeners.size === 0 || userId === undefined || globalThis.document?.hidden) return;
    this.#isReading = true;
    try {
      const answer = await this.#source.read();
      if (userId === this.#userId) {
        this.#failures = 0;
        this.#isStale = false;
        this.observe(answer);
      }
    } catch {
      if (userId === this.#userId) {
        this.#failures += 1;
        this.#isStale = true;
      }
    }
    this.#isReading = false;
    this.#publish();
    if (this.#listeners.size === 0) return;
    const delayMs = userId === this.#userId ? Math.min(MAX_DELAY_MS, EVERY_MS * 2 ** this.#failures) : 0;
    this.#timer = setTimeout(() => void this.#poll(), delayMs);
  }

  /** Returns whether an answer is newer than what is known. */
  #take({ unread, at }: Known): boolean {
    if (this.#known !== null && at <= this.#known.at) return false;
    this.#known = { unread, at };
    this.#publish();
    return true;
  }

  #send({ unread, at }: Known): void {
    this.#channel?.postMessage({ unread, at, userId: this.#userId });
  }

  #publish(): void {
    const known = this.#known;
    const unread = known === null ? null : Math.max(0, known.unread - this.#marking);
    const next: UnreadState = { unread, at: known?.at ?? null, stale: this.#isStale };
    const { state } = this;
    if (next.unread === state.unread && next.at === state.at && next.stale === state.stale) return;
    this.#state = next;
    for (const listener of [...this.#listeners]) listener(next);
  }
}

function isSame(ref: NotificationRef, { kind, subject }: Notification): boolean {
  return ref.kind === kind && ref.subject.type === subject.type && ref.subject.id === subject.id;
}
