/** What is read again and again: an operator looks at it, and it changes. */
import { ProblemError } from "plaza-client";
import { useEffect, useRef, useState } from "preact/hooks";

const MAX_DELAY_MS = 60_000;

/** Options of a read that is repeated anyway. */
export const ONCE = { retry: { attempts: 1 } };

export interface Repeated<T> {
  data: T | undefined;
  /** Why the last read failed; `data` is of an earlier one then. */
  error: unknown;
  /** When `data` was read: milliseconds since 1970. */
  at: number | undefined;
  reload: () => void;
  everyMs: number;
}

/**
 * Reads now and `everyMs` after each answer. The delay doubles with each failure, and is never
 * below `Retry-After`. Nothing is read while the page is hidden; once it is shown, or connected
 * again, it reads at once. `afterMs`: when to read first.
 */
export function useRepeated<T>(read: (signal: AbortSignal) => Promise<T>, everyMs = 5000, afterMs = 0): Repeated<T> {
  const [state, setState] = useState<Pick<Repeated<T>, "data" | "error" | "at">>({
    data: undefined,
    error: undefined,
    at: undefined,
  });
  const latest = useRef(read);
  latest.current = read;
  const tick = useRef((): void => undefined);
  useEffect(() => {
    const ends = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let isReading = false;
    const readOnce = async () => {
      clearTimeout(timer);
      if (isReading || document.hidden) return;
      isReading = true;
      let delayMs = everyMs;
      try {
        const data = await latest.current(ends.signal);
        if (ends.signal.aborted) return;
        failures = 0;
        setState({ data, error: undefined, at: Date.now() });
      } catch (error) {
        if (ends.signal.aborted) return;
        failures += 1;
        const leastMs = error instanceof ProblemError ? (error.retryAfterS ?? 0) * 1000 : 0;
        delayMs = Math.min(MAX_DELAY_MS, Math.max(leastMs, everyMs * 2 ** failures));
        setState((before) => ({ ...before, error }));
      }
      isReading = false;
      timer = setTimeout(readOnce, delayMs);
    };
    tick.current = () => void readOnce();
    const show = () => void readOnce();
    document.addEventListener("visibilitychange", show);
    addEventListener("online", show);
    if (afterMs === 0) show();
    else timer = setTimeout(readOnce, afterMs);
    return () => {
      ends.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", show);
      removeEventListener("online", show);
    };
  }, [everyMs]);
  return { ...state, everyMs, reload: () => tick.current() };
}
