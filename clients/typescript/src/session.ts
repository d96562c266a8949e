/** Where the session of a client and its anonymous id are stored. */
import type { Schemas } from "./operations.ts";

export interface Session {
  token: string;
  /**
   * When the session would have ended without use, as its sign-in reported: milliseconds since 1970. Each use
   * extends it, so it says nothing about the end: a 401 of the API does.
   */
  expiresAt: number;
  user: Schemas["UserCard"];
  /** Its sign-in opened the closed account again. */
  reopened?: boolean;
}

/** Why the session is another one. `ended`: the API refused its token. */
export type SessionChange = "signed-in" | "signed-out" | "ended";

/** An anonymous id, by which a client without a session counts as one visitor. */
export interface Visitor {
  id: string;
  /** When it ends: milliseconds since 1970. */
  expiresAt: number;
}

/** Storage of one value. `load` and `save` may return a promise. */
export interface Store<T> {
  load(): T | null | Promise<T | null>;
  /** `change`: why the session is saved. */
  save(value: T | null, change?: SessionChange): void | Promise<void>;
  /** Calls `listener` when another client has changed what is stored: another tab of the browser. */
  watch?(listener: (value: T | null, change: SessionChange) => void): void;
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

/** What is stored instead of a session that the API ended; other tabs can tell it from a sign-out. */
const ENDED = "null";

/**
 * Keeps the value in `localStorage` or `sessionStorage`; in memory where they are refused. Values that
 * other tabs store in `localStorage` are taken over.
 */
export function webStore<T = Session>(storage: () => Storage, key = "plaza-session"): Store<T> {
  const memory = memoryStore<T>();
  /** What was stored when it was last read or written here. */
  let known: string | null = null;
  const read = (): string | null => {
    known = storage().getItem(key);
    return known;
  };
  const readAgain = (): string | null => {
    try {
      return read();
    } catch {
      return known;
    }
  };
  return {
    load() {
      try {
        return JSON.parse(read() ?? "null");
      } catch {
        return memory.load();
      }
    },
    save(value, change) {
      void memory.save(value);
      try {
        if (value === null && change !== "ended") storage().removeItem(key);
        else storage().setItem(key, JSON.stringify(value));
      } catch {
        // Private windows and full storage: the value lasts as long as the page.
      }
      readAgain();
    },
    watch(listener) {
      if (typeof addEventListener !== "function") return;
      const look = () => {
        const before = known;
        const stored = readAgain();
        if (stored === before) return;
        let value: T | null;
        try {
          value = JSON.parse(stored ?? "null");
        } catch {
          return;
        }
        listener(value, stored === ENDED ? "ended" : value === null ? "signed-out" : "signed-in");
      };
      addEventListener("storage", look);
      // A page that was frozen, or whose browser sends no such events, looks when it is shown again.
      addEventListener("pageshow", look);
      globalThis.document?.addEventListener("visibilitychange", look);
    },
  };
}
