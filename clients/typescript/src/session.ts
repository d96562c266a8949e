/** Where the session of a client is stored. */
import type { Schemas } from "./operations.ts";

export interface Session {
  token: string;
  /** When the session ends at the latest if it is not used: milliseconds since 1970. */
  expiresAt: number;
  user: Schemas["UserCard"];
}

/** Storage of one session. Either method may return a promise. */
export interface SessionStore {
  load(): Session | null | Promise<Session | null>;
  save(session: Session | null): void | Promise<void>;
}

/** Keeps the session until the page or the process ends. */
export function memoryStore(session: Session | null = null): SessionStore {
  return {
    load: () => session,
    save: (changed) => {
      session = changed;
    },
  };
}

/** Keeps the session in `localStorage` or `sessionStorage`; in memory where they are refused. */
export function webStore(storage: () => Storage, key = "plaza-session"): SessionStore {
  const memory = memoryStore();
  return {
    load() {
      try {
        const found: Session | null = JSON.parse(storage().getItem(key) ?? "null");
        return found !== null && found.expiresAt > Date.now() ? found : null;
      } catch {
        return memory.load();
      }
    },
    save(session) {
      void memory.save(session);
      try {
        if (session === null) storage().removeItem(key);
        else storage().setItem(key, JSON.stringify(session));
      } catch {
        // Private windows and full storage: the session lasts as long as the page.
      }
    },
  };
}
