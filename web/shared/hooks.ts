import {
  type FieldProblem,
  type ItemOf,
  type ListPath,
  ProblemError,
  type Reaction,
  type ReactionState,
  type Session,
} from "plaza-client";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { plaza } from "./plaza.ts";
import { currentEntry, wasLeft } from "./router.ts";
import { NotSignedIn, onLeave, useSessionChange } from "./session.ts";
import { shared } from "./texts.ts";

export function useSession(): Session | null {
  const [session, setSession] = useState(plaza.session);
  useLayoutEffect(() => plaza.onSession(setSession), []);
  return session;
}

/** Follows one reaction; `make` returns it for the current `inputs`. */
export function useReaction(make: () => Reaction, inputs: unknown[]): [ReactionState, Reaction] {
  const session = useSession();
  const reaction = useMemo(make, [...inputs, session]);
  const [, setState] = useState(reaction.state);
  useLayoutEffect(() => {
    setState(reaction.state);
    return reaction.subscribe(setState);
  }, [reaction]);
  return [reaction.state, reaction];
}

/** Starts something while an element is near the visible part of the page, and stops it otherwise. */
export function useWhileShown(
  element: { readonly current: Element | null },
  start: () => () => void,
  inputs: unknown[],
): void {
  useEffect(() => {
    if (element.current === null) return;
    let stop: (() => void) | undefined;
    const observer = new IntersectionObserver(
      ([entry]) => {
        stop?.();
        stop = entry?.isIntersecting ? start() : undefined;
      },
      { rootMargin: "200px" },
    );
    observer.observe(element.current);
    return () => {
      observer.disconnect();
      stop?.();
    };
  }, inputs);
}

export interface Loaded<T> {
  data: T | undefined;
  error: unknown;
  reload: () => void;
  /** Shows what a change returned. */
  set: (data: T) => void;
}

/** Lists and objects that were read, by key: a page that is opened again shows them at once. */
const cache = new Map<string, unknown>();
const MAX_CACHED = 200;
onLeave(() => cache.clear());

function remember(key: string, value: unknown): void {
  cache.delete(key);
  cache.set(key, value);
  const [oldest] = cache.keys();
  if (cache.size > MAX_CACHED && oldest !== undefined) cache.delete(oldest);
}

/** Reads something when `key` changes; shows what was read before under this key meanwhile. */
export function useRead<T>(key: string, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [, render] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const error = useRef<unknown>(undefined);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const ends = new AbortController();
    error.current = undefined;
    latest.current(ends.signal).then(
      (data) => {
        if (ends.signal.aborted) return;
        remember(key, data);
        render((count) => count + 1);
      },
      (reason: unknown) => {
        if (ends.signal.aborted) return;
        error.current = reason;
        render((count) => count + 1);
      },
    );
    return () => ends.abort();
  }, [key, attempt]);
  useSessionChange((isSignedIn) => {
    if (isSignedIn || !cache.has(key)) setAttempt((count) => count + 1);
  });
  return {
    data: cache.get(key) as T | undefined,
    error: error.current,
    reload: useCallback(() => setAttempt((count) => count + 1), []),
    set: (data) => {
      remember(key, data);
      render((count) => count + 1);
    },
  };
}

export interface Pages<Item> {
  items: Item[] | undefined;
  hasMore: boolean;
  isLoading: boolean;
  error: unknown;
  more: () => void;
  reload: () => void;
  /** Changes the shown items: a comment that was just written. */
  change: (change: (items: Item[]) => Item[]) => void;
}

interface Read<Item> {
  items: Item[];
  next: string | null;
}

const MAX_READS = 5; // a page may be empty although more follow

/**
 * Reads a list page by page. `input` has the parameters of the list. Back and Forward show the items
 * that the entry of the history had; another visit shows the last ones, and reads the first page again.
 */
export function usePages<P extends ListPath>(path: P, input: object = {}): Pages<ItemOf<P>> {
  const key = path + JSON.stringify(input);
  const entry = currentEntry();
  const own = `${entry} ${key}`;
  const [isLoading, setLoading] = useState(false);
  const [error, setError] = useState<unknown>();
  const [, render] = useState(0);
  const ends = useRef<AbortController | undefined>(undefined);
  const shown = (cache.get(own) ?? cache.get(key)) as Read<ItemOf<P>> | undefined;
  const keep = (read: Read<ItemOf<P>>) => {
    remember(key, read);
    remember(own, read);
  };

  const load = async (before: Read<ItemOf<P>> | undefined) => {
    ends.current?.abort();
    ends.current = new AbortController();
    const { signal } = ends.current;
    setLoading(true);
    setError(undefined);
    try {
      const { query = {} } = input as { query?: object };
      let page: Read<ItemOf<P>> = { items: [], next: before?.next ?? null };
      for (
        let reads = 0;
        reads === 0 || (page.items.length === 0 && page.next !== null && reads < MAX_READS);
        reads++
      ) {
        const options = { ...input, query: { ...query, cursor: page.next ?? undefined }, signal } as unknown as never;
        page = (await plaza.get(path, ...([options] as never))) as Read<ItemOf<P>>;
      }
      keep({ items: [...(before?.items ?? []), ...page.items], next: page.next });
    } catch (reason) {
      if (!signal.aborted) setError(reason);
    }
    if (!signal.aborted) setLoading(false);
  };
  useEffect(() => {
    if (!(wasLeft(entry) && cache.has(own))) void load(undefined);
    return () => ends.current?.abort();
  }, [own]);
  useSessionChange((isSignedIn) => {
    if (isSignedIn || !cache.has(key)) void load(undefined);
  });
  return {
    items: shown?.items,
    hasMore: shown !== undefined && shown.next !== null,
    isLoading,
    error,
    more: () => void load(shown),
    reload: () => void load(undefined),
    change: (change) => {
      const now = ((cache.get(own) ?? cache.get(key)) as Read<ItemOf<P>> | undefined) ?? { items: [], next: null };
      keep({ ...now, items: change(now.items) });
      render((count) => count + 1);
      // A read that is in flight began before the change, and may lack it.
      if (isLoading) void load(undefined);
    },
  };
}

/** Returns what is wrong with a field, for people; what the API says of a code that has no text. */
function inWords({ code, detail, limit }: FieldProblem): string {
  return shared.fields[code]?.(limit ?? null) ?? shared.fields.invalid?.(null) ?? detail;
}

export interface Form {
  isSending: boolean;
  /** What is wrong with a field of the request. */
  field: (name: string) => string | undefined;
  /** What is wrong with the request as a whole. */
  problem: unknown;
  submit: (event: Event) => void;
}

/** Sends a form; the problems of its fields and of the request are shown beside them. */
export function useForm(send: (data: FormData) => Promise<void>): Form {
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const fields = problem instanceof ProblemError ? problem.errors : [];
  const problemOf = (name: string) => {
    const pattern = new RegExp(`^(body|query)\\.${name}(\\.|$)`);
    const problem = fields.find((field) => pattern.test(field.field));
    return problem && inWords(problem);
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    setSending(true);
    setProblem(undefined);
    try {
      await send(new FormData(form));
    } catch (reason) {
      const isRefused = !(reason instanceof NotSignedIn);
      if (isRefused) setProblem(reason);
      // After the problems are shown, the first field that has one gets the focus. Without any, it
      // goes back to the button, which lost it while it was disabled.
      const next = isRefused ? '[aria-invalid="true"]' : '[type="submit"]';
      setTimeout(() => form.querySelector<HTMLElement>(next)?.focus());
    }
    setSending(false);
  };
  return {
    isSending,
    problem: fields.length > 0 ? undefined : problem,
    field: problemOf,
    submit: (event) => void submit(event),
  };
}

/** Calls `listener` when the browser is connected again, while `isActive`. */
export function useReconnect(listener: () => void, isActive = true): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    if (!isActive) return;
    const call = () => latest.current();
    addEventListener("online", call);
    return () => removeEventListener("online", call);
  }, [isActive]);
}

/** The current time, renewed every second while `isActive`. */
export function useNow(isActive: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isActive) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isActive]);
  return now;
}
