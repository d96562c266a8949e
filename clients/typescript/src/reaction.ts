/** A like, a collect or a follow of the caller, shown at once and confirmed later. */

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
  /** False when the read was answered from MySQL, and may lack the last seconds. */
  exact: boolean;
}

/** Sends a state to the API; returns the new total, null for 202. */
export type SendReaction = (active: boolean) => Promise<number | null>;

/**
 * The caller's reaction to one target.
 *
 * At most one request is in flight. A state that is set meanwhile waits, and the last one is sent,
 * so responses cannot overtake each other. A read changes the state only if it began after the
 * last response: `clock` counts requests and responses of the client.
 */
export class Reaction {
  readonly #send: SendReaction;
  readonly #clock: () => number;
  readonly #listeners = new Set<(state: ReactionState) => void>();
  #confirmed: Pick<Snapshot, "active" | "total">;
  #confirmedAt: number;
  #exact = true;
  /** False after a failed request, which the API may have carried out. */
  #certain = true;
  #active: boolean;
  #error: unknown;
  #running: Promise<void> | null = null;
  #state: ReactionState;

  constructor(send: SendReaction, clock: () => number, first: Snapshot, at: number) {
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
   * Takes over what a read returned that began `at`. Ignores it while a request is in flight, when
   * a response or another read is newer, and when it may lack a reaction that is not counted yet.
   */
  observe(read: Snapshot, at: number): void {
    if (this.#running !== null || at < this.#confirmedAt || (!read.exact && !this.#exact)) return;
    this.#confirmed = { active: read.active, total: read.total ?? this.#confirmed.total };
    this.#confirmedAt = at;
    this.#active = read.active;
    this.#exact = this.#certain = true;
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
        const total = await this.#send(sent);
        this.#exact = total !== null;
        this.#confirmed = { active: sent, total: total ?? this.#totalFor(sent) };
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
