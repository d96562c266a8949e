/** The newest totals that any answer of this client had, ordered by their tokens. */

/** A total of a target that screens show; an added kind has its own name. `comments` has no token: the last answer counts. */
export type TotalName = "likes" | "collects" | "followers" | "comments" | (string & {});

export interface LiveRef {
  /** `post`, `comment`, `review`, `user`, or a type of the app. */
  type: string;
  id: string;
}

/** A total and its order token; null: it may lack recent reactions. */
export interface Known {
  readonly total: number;
  readonly at: string | null;
}

/** Built-in kind -> the name of its total, which is also part of its paths. */
export const BUILT_IN: ReadonlyMap<string, TotalName> = new Map([
  ["like", "likes"],
  ["collect", "collects"],
  ["follow", "followers"],
]);
/** Name of a total -> its built-in kind. */
export const KINDS: ReadonlyMap<TotalName, string> = new Map([...BUILT_IN].map(([kind, name]) => [name, kind]));
export const NAMES: readonly TotalName[] = [...KINDS.keys(), "comments"];
const MAX_KEPT = 2_000;

/** Returns whether `next` replaces `known`: the rule of every client, cache and pipe (docs/live-numbers.md). */
export function isNewer(next: Known, known: Known | undefined): boolean {
  if (known === undefined) return true;
  if (next.at === null) return known.at === null && next.total !== known.total;
  return known.at === null || next.at > known.at;
}

/** Returns the name of the total of a kind: likes, bookmark. */
export function nameOf(kind: string): TotalName {
  return BUILT_IN.get(kind) ?? kind;
}

/** Returns a total of an API object, and its order token; null where the object has none. */
export function totalIn(item: object, name: string, token = `${name}_at`): { total: number | null; at: string | null } {
  const fields = item as Record<string, unknown>;
  const [total, at] = [fields[name], fields[token]];
  return { total: typeof total === "number" ? total : null, at: typeof at === "string" ? at : null };
}

export function keyOf(ref: LiveRef): string {
  return `${ref.type}:${ref.id}`;
}

type Listener = (name: TotalName, known: Known) => void;

/** One store for each client. */
export class Totals {
  readonly #known = new Map<string, Map<TotalName, Known>>();
  readonly #listeners = new Map<string, Set<Listener>>();

  /** The totals of a target; undefined when no answer had it. */
  of(key: string): ReadonlyMap<TotalName, Known> | undefined {
    return this.#known.get(key);
  }

  /** Takes a total over if it is newer. Returns whether it was. */
  offer(key: string, name: TotalName, next: Known): boolean {
    const known = this.#known.get(key) ?? new Map<TotalName, Known>();
    if (!isNewer(next, known.get(name))) return false;
    known.set(name, next);
    this.#known.delete(key);
    this.#known.set(key, known); // the newest is the last one
    if (this.#known.size > MAX_KEPT) this.#dropOldest();
    for (const listener of [...(this.#listeners.get(key) ?? [])]) listener(name, next);
    return true;
  }

  /** Takes over all totals of an item of the API. Returns whether one was newer. */
  offerItem(key: string, item: object): boolean {
    const { reactions = {} } = item as { reactions?: Record<string, object> };
    let changed = false;
    const take = (name: TotalName, { total, at }: ReturnType<typeof totalIn>) => {
      if (total !== null) changed = this.offer(key, name, { total, at }) || changed;
    };
    for (const name of NAMES) take(name, totalIn(item, name));
    for (const [kind, read] of Object.entries(reactions)) take(nameOf(kind), totalIn(read, "total", "at"));
    return changed;
  }

  /** Calls `listener` with each newer total of a target. Returns a function that ends this. */
  subscribe(key: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(key);
    };
  }

  #dropOldest(): void {
    for (const key of this.#known.keys()) {
      if (this.#listeners.has(key)) continue;
      this.#known.delete(key);
      return;
    }
  }
}
