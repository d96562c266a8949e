/** Where the session of a client and its anonymous id are stored. */
import type { Schemas } from "./operations.ts";

export interface Session {
  token: string;
  /** When the session ends at the latest if it is not used: milliseconds since 1970. */
  expiresAt: number;
  user: Schemas["UserCard"];
}

/** An anonymous id, by which a client without a session counts as one visitor. */
export interface Visitor {
  id: string;
  /** When it ends: milliseconds since 1970. */
  expiresAt: number;
}

/** Storage of one value. Either method may return a promise. */
export interface Store<T> {
  load(): T | null | Promise<T | null>;
  save(value: T | null): void | Promise<void>;
}
export type SessionStore = Store<Session>;

/** Keeps the value until the page or the process ends. */
export function memoryStore<T = Session>(value: T | null = null): Store<T> {
  return {
    load: () => value,
    save: (changed) => {
      value = changed;
    },
  };
}

/** Keeps the value in `localStorage` or `sessionStorage`; in memory where they are refused. */
export function webStore<T extends { expiresAt: number } = Session>(
  storage: () => Storage,
  key = "plaza-session",
): Store<T> {
  const memory = memoryStore<T>();
  return {
    load() {
      try {
        const stored: T | null = JSON.parse(storage().getItem(key) ?? "null");
        return stored !== null && stored.expiresAt > Date.now() ? stored : null;
      } catch {
        return memory.load();
      }
    },
    save(value) {
      void memory.save(value);
      try {
        if (value === null) storage().removeItem(key);
        else storage().setItem(key, JSON.stringify(value));
      } catch {
        // Private windows and full storage: the value lasts as long as the page.
      }
    },
  };
}
