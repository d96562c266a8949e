/** A like, a collect or a follow of the caller, shown at once and confirmed later. */
import { isNewer, type LiveRef } from "./totals.ts";

export interface ReactionState {
  /** The optimistic state: it changes at once, and back only if the API refuses it. */
  readonly active: boolean;
  /** The total of all users, with the optimistic state of the caller; null when it is unknown. */
  readonly total: number | null;
  /** True until the API has confirmed the optimistic state. */
  readonly pending: boolean;
  /** False while the API has accepted the reaction and not counted it yet (202). */
  readonly exact: boolean;
  /** Why the optimistic state was reverted; undefined otherwise. */
  readonly error?: unknown;
}

/** What a read returns; `total` is null when it has none. */
export interface Snapshot {
  active: boolean;
  total: number | null;
  /** The order token of the total; null when it has none. */
  at: string | null;
  /** False when the read was answered from MySQL, and may lack the last seconds. */
  exact: boolean;
}

/** Sends a state to the API; returns the new total, null for 202, and its order token. */
export type SendReaction = (active: boolean) => Promise<{ total: number | null; at: string | null }>;

const UNCOUNTED_MS = 30_000;

/**
 * The caller's reaction to one target.
 *
 * At most one request is in flight. A state that is set meanwhile waits, and the last one is sent,
 * so responses cannot overtake each other. Totals are ordered by their tokens. Where the API sends
 * none, a read changes the state only if it began after the last response: `clock` counts requests
 * and responses of the client.
 */
export class Reaction {
  /** The target, for `plaza.live`. */
  readonly ref: LiveRef;
  readonly #send: SendReaction;
  readonly #clock: () => number;
  readonly #listeners = new Set<(state: ReactionState) => void>();
  #confirmed: Pick<Snapshot, "active" | "total" | "at">;
  /** The highest total that others reported while a request was in flight. */
  #frame: { total: number; at: string | null } | undefined;
  /** When the API accepted a reaction without counting it. */
  #acceptedMs = 0;
  #confirmedAt: number;
  #exact = true;
  /** False after a failed request, which the API may have carried out. */
  #certain = true;
  #active: boolean;
  #error: unknown;
  #running: Promise<void> | null = null;
  #state: ReactionState;

  constructor(ref: LiveRef, send: SendReaction, clock: () => number, first: Snapshot, at: number) {
    this.ref = ref;
    this.#send = send;
    this.#clock = clock;
    this.#confirmed = first;
    this.#confirmedAt = at;
    this.#active = first.active;
    this.#state = this.#describe();
  }

  /** The current state; the same object until it changes. */
  get state(): ReactionState {
    return this.#state;
  }

  /** True while a request is in flight or a listener is subscribed. */
  get inUse(): boolean {
    return this.#running !== null || this.#listeners.size > 0;
  }

  /** Calls `listener` after each change. Returns a function that ends this. */
  subscribe(listener: (state: ReactionState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Sets the state. The promise resolves with the confirmed state of the last call, or is rejected
   * with the error that reverted it; it may be ignored, because `state.error` has the error too.
   */
  set(active: boolean): Promise<ReactionState> {
    this.#active = active;
    this.#error = undefined;
    if (this.#running === null && !this.#isSettled()) this.#running = this.#confirm();
    const confirmed = Promise.resolve(this.#running).then(() => {
      if (this.#error !== undefined) throw this.#error;
      return this.#state;
    });
    confirmed.catch(() => undefined);
    this.#notify();
    return confirmed;
  }

  toggle(): Promise<ReactionState> {
    return this.set(!this.#active);
  }

  /**
   * Takes over what a read returned that began `began`. Ignores it while a request is in flight,
   * when a response or another read is newer, and when it may lack a reaction that is not counted
   * yet.
   */
  observe(read: Snapshot, began: number): void {
    const { at, total } = this.#confirmed;
    if (this.#running !== null || (!read.exact && !this.#exact)) return;
    if (at !== null ? read.at === null || read.at < at : began < this.#confirmedAt) return;
    this.#confirmed = { active: read.active, total: read.total ?? total, at: read.at };
    this.#confirmedAt = Math.max(began, this.#confirmedAt);
    this.#active = read.active;
    this.#exact = this.#certain = true;
    this.#notify();
  }

  /** Takes over a total that says nothing about the caller, if it is newer. */
  offer(total: number, at: string | null): void {
    const next = { total, at };
    if (this.#running !== null) {
      if (isNewer(next, this.#frame)) this.#frame = next;
      return;
    }
    if (!this.#exact && Date.now() - this.#acceptedMs < UNCOUNTED_MS) return;
    const { total: known, ...confirmed } = this.#confirmed;
    if (at === null || (known !== null && !isNewer(next, { total: known, at: confirmed.at }))) return;
    this.#confirmed = { ...this.#confirmed, total, at };
    this.#notify();
  }

  /** Takes over what another client of the same user was answered, if it is newer. */
  follow(active: boolean, at: string): void {
    const { at: known } = this.#confirmed;
    if (this.#running !== null || known === null || at < known) return;
    this.#confirmed = { ...this.#confirmed, active };
    this.#active = active;
    this.#notify();
  }

  #isSettled(): boolean {
    return this.#certain && this.#active === this.#confirmed.active;
  }

  /** Sends states until the last one is confirmed or refused. */
  async #confirm(): Promise<void> {
    do {
      const sent = this.#active;
      try {
        const { total, at } = await this.#send(sent);
        this.#exact = total !== null;
        if (total === null) {
          this.#acceptedMs = Date.now();
          this.#confirmed = { ...this.#confirmed, active: sent, total: this.#totalFor(sent) };
        } else {
          const known = this.#confirmed;
          const isOld = at !== null && known.at !== null && at < known.at;
          this.#confirmed = isOld ? { ...known, active: sent } : { active: sent, total, at };
        }
        this.#certain = true;
      } catch (error) {
        this.#certain = false;
        if (this.#active === sent) {
          this.#active = this.#confirmed.active;
          this.#error = error;
        }
      }
      this.#confirmedAt = this.#clock();
      this.#notify();
    } while (this.#error === undefined && !this.#isSettled());
    this.#running = null;
    const frame = this.#frame;
    this.#frame = undefined;
    if (frame !== undefined) this.offer(frame.total, frame.at);
    this.#notify();
  }

  /** Returns the total if the caller's reaction were `active`. */
  #totalFor(active: boolean): number | null {
    const { active: before, total } = this.#confirmed;
    return total === null ? null : Math.max(0, total + Number(active) - Number(before));
  }

  #describe(): ReactionState {
    return {
      active: this.#active,
      total: this.#totalFor(this.#active),
      pending: this.#running !== null,
      exact: this.#exact,
      ...(this.#error === undefined ? {} : { error: this.#error }),
    };
  }

  #notify(): void {
    const next = this.#describe();
    const now = this.#state;
    if (
      next.active === now.active &&
      next.total === now.total &&
      next.pending === now.pending &&
      next.exact === now.exact &&
      next.error === now.error
    ) {
      return;
    }
    this.#state = next;
    for (const listener of [...this.#listeners]) listener(next);
  }
}
