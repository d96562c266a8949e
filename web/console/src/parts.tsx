/** The small parts that the console's pages are made of. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useNow } from "shared/hooks.ts";
import { formatDuration, formatTime } from "shared/language.ts";
import type { Repeated } from "shared/repeated.ts";
import { Problem, Skeleton, Title } from "shared/ui.tsx";
import { Runbook } from "./runbooks.tsx";
import { t, word } from "./texts.ts";

export type Tone = "good" | "bad" | "plain";

export function Time({ at }: { at: string | null }) {
  if (at === null) return <>–</>;
  return <time dateTime={at}>{formatTime(at, { dateStyle: "medium", timeStyle: "medium" })}</time>;
}

/** The title of a page, and how old is what it shows. */
export function LiveTitle({
  text,
  live,
  children,
}: {
  text: string;
  live: Repeated<unknown>;
  children?: ComponentChildren;
}) {
  return (
    <Title
      text={text}
      actions={
        <span class="actions-of-page">
          {children}
          <Freshness live={live} />
        </span>
      }
    />
  );
}

function Freshness({ live: { at, error } }: { live: Repeated<unknown> }) {
  const now = useNow(at !== undefined);
  if (at === undefined) return null;
  const ageS = Math.max(0, Math.round((now - at) / 1000));
  return (
    <span class={error === undefined ? "fine" : "fine stale"}>{ageS < 2 ? t.live : t.old(formatDuration(ageS))}</span>
  );
}

const MIN_STALE_MS = 10_000;
const MISSED_READS = 3;

interface DatedProps<T> {
  live: Repeated<T>;
  children: (data: T, isStale: boolean) => ComponentChildren;
}

/** What `children` make of live data; grey when it could not be read again in time. */
export function Dated<T>({ live: { data, error, at = 0, everyMs }, children }: DatedProps<T>) {
  const now = useNow(data !== undefined);
  if (data === undefined) return null;
  const isStale = error !== undefined || now - at > Math.max(MIN_STALE_MS, MISSED_READS * everyMs);
  return <div class={isStale ? "dated outdated" : "dated"}>{children(data, isStale)}</div>;
}

/** Live data, a skeleton before there is any, and what went wrong. */
export function Shown<T>({ live, children }: DatedProps<T>) {
  return (
    <>
      <Problem error={live.error} retry={live.reload} />
      {live.data === undefined && live.error === undefined && <Skeleton rows={1} />}
      <Dated live={live}>{children}</Dated>
    </>
  );
}

export function Stat(props: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  tone?: Tone;
  href?: string;
  /** What to do when the tone is bad. */
  runbook?: string;
}) {
  const { label, value, note, tone = "plain", href, runbook } = props;
  const content = (
    <>
      <span class="label">{label}</span>
      <b>{value}</b>
      {note !== undefined && <small>{note}</small>}
    </>
  );
  return (
    <div class={`card stat ${tone}`}>
      {href === undefined ? content : <a href={href}>{content}</a>}
      {tone === "bad" && runbook !== undefined && <Runbook name={runbook} />}
    </div>
  );
}

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

/** Where the web app is; empty where this page does not know it. */
const APP = document.querySelector<HTMLMetaElement>('meta[name="plaza-app"]')?.content ?? "";

/** A link to a page of the web app, as its users see it. */
export function InApp({ path, children }: { path: string | null; children: ComponentChildren }) {
  if (APP === "" || path === null) return <>{children}</>;
  return (
    <a href={`${APP}#${path}`} target="_blank" rel="noreferrer">
      {children}
    </a>
  );
}

/** The reactions of one kind to a target, as a link to what the app shows of it. */
export function Reactions({ kind, type, id }: { kind: string; type: string; id: string }) {
  return <InApp path={pathOf(type, id)}>{t.reactions(word(kind), t.target(word(type), id))}</InApp>;
}

/** Returns the page of the app that shows a target; comments and reviews have none of their own. */
export function pathOf(type: string, id: string): string | null {
  if (type === "post") return `/posts/${id}`;
  return type === "user" ? `/users/${id}` : null;
}

/** A field that shortens what is shown to what has its text. */
export function Filter({ label, value, set }: { label: string; value: string; set: (value: string) => void }) {
  return (
    <input
      class="filter"
      type="search"
      placeholder={t.filter}
      aria-label={label}
      value={value}
      onInput={(event) => set(event.currentTarget.value)}
    />
  );
}

/** Whether a text has the text of a filter, in any case. */
export function passes(filter: string, text: string): boolean {
  return text.toLowerCase().includes(filter.trim().toLowerCase());
}

interface TableProps {
  /** The texts that a filter looks into, one a row; without them there is no filter. */
  texts?: string[];
  label: string;
  head: string[];
  /** The cells of each row; the first one names it. */
  rows: ComponentChildren[][];
  empty: string;
}

/** A table that scrolls by itself where it is wider than the page. Numbers are in `.number`. */
export function Table({ label, head, rows, empty, texts }: TableProps) {
  const [filter, setFilter] = useState("");
  if (rows.length === 0) return <p class="card fine">{empty}</p>;
  const shown = texts === undefined ? rows : rows.filter((_, row) => passes(filter, texts[row] ?? ""));
  return (
    <div class="card table" role="region" aria-label={label} tabIndex={0}>
      {texts !== undefined && <Filter label={t.filterOf(label)} value={filter} set={setFilter} />}
      <table>
        <thead>
          <tr>
            {head.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(([name, ...cells], row) => (
            <tr key={row}>
              <th scope="row">{name}</th>
              {cells.map((cell, column) => (
                <td key={column} class={typeof cell === "string" && /^[\d.,–-]/.test(cell) ? "number" : ""}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export interface Action {
  isBusy: boolean;
  error: unknown;
  /** What the action that succeeded did. */
  done: string;
  run: (act: () => Promise<unknown>) => Promise<void>;
}

/** Runs what a button starts; `act` returns what was done, in words. */
export function useAction(): Action {
  const [state, setState] = useState<Omit<Action, "run">>({ isBusy: false, error: undefined, done: "" });
  const run = async (act: () => Promise<unknown>) => {
    setState({ isBusy: true, error: undefined, done: "" });
    try {
      const result = await act();
      setState({ isBusy: false, error: undefined, done: typeof result === "string" ? result : "" });
    } catch (error) {
      setState({ isBusy: false, error, done: "" });
    }
  };
  return { ...state, run };
}

export function Outcome({ of }: { of: Action }) {
  return (
    <>
      <p class="done" role="status">
        {of.done}
      </p>
      <Problem error={of.error} />
    </>
  );
}
