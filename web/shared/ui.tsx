/** The small parts that all pages are made of. */
import { NetworkError, type PlazaError, ProblemError } from "plaza-client";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Form, type Pages, useReconnect } from "./hooks.ts";
import { formatAgo, formatNumber, formatTime } from "./language.ts";
import { shared } from "./texts.ts";

const ICONS = {
  heart: "M12 20.5 4.4 12.9a4.9 4.9 0 0 1 6.9-6.9l.7.7.7-.7a4.9 4.9 0 0 1 6.9 6.9z",
  bell: "M6 17V11a6 6 0 0 1 12 0v6l1.5 1.5h-15zm4 1.5a2 2 0 0 0 4 0",
  bookmark: "M6 4h12v16.5l-6-4-6 4z",
  comment: "M4 5h16v11.5h-8.5L7 20.5v-4H4z",
  home: "M4 11 12 4l8 7v9h-5.5v-6h-5v6H4z",
  search: "M11 18a7 7 0 1 1 0-14 7 7 0 0 1 0 14zm5-2 4.5 4.5",
  star: "m12 3.8 2.5 5.2 5.7.8-4.1 4 1 5.7-5.1-2.7-5.1 2.7 1-5.7-4.1-4 5.7-.8z",
  pin: "M12 21s-6.5-5.8-6.5-11a6.5 6.5 0 0 1 13 0c0 5.2-6.5 11-6.5 11zm0-8.6a2.4 2.4 0 1 0 0-4.8 2.4 2.4 0 0 0 0 4.8z",
  calendar: "M4.5 6h15v13.5h-15zM4.5 10.5h15M8.5 3.5v4m7-4v4M9 15l2 2 4-4",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm-7.5 8.5c.6-4 3.6-6 7.5-6s6.9 2 7.5 6z",
  pen: "M5 19l.9-4.1L16.3 4.5l3.2 3.2L9.1 18.1z",
  back: "M14.5 5 7.5 12l7 7",
  next: "M9.5 5l7 7-7 7",
  pulse: "M3 12h4l3-7 4 14 3-7h4",
  queue: "M4 6h16M4 12h16M4 18h10",
  scales: "M12 4v16M7 20h10M5 7h14M5 7l-2.5 6.5a3 3 0 0 0 5 0zm14 0-2.5 6.5a3 3 0 0 0 5 0z",
  key: "M14.5 9.5 21 3m-3.5 3.5 2.5 2.5m-8.1 1.4a4.6 4.6 0 1 0 1.7 1.7z",
  lock: "M6 11h12v9H6zm3 0V8a3 3 0 0 1 6 0v3",
  tag: "M4 4h8l8.5 8.5-8 8L4 12zm4.5 4.5h.01",
  sliders: "M4 7h10m4 0h2M4 17h2m4 0h10M14 4.5v5m4-5v5M6 14.5v5m4-5v5",
  flag: "M5 21V4h13l-3 5 3 5H5",
  eraser: "M9 20 3.5 14.5l10-10L20.5 11.5 12 20zm0 0h12M8.5 9.5l7 7",
  bolt: "M13 3 5 13.5h6L10 21l8.5-10.5h-6z",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

/** How long ago something was; the date after a week. */
export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={formatTime(at, { dateStyle: "full", timeStyle: "short" })}>
      {formatAgo(at)}
    </time>
  );
}

/** An exact number; it is never rounded. */
export function Count({ of }: { of: number | null }) {
  return <span class="count">{formatNumber(of)}</span>;
}

/** A number and what it is the number of; `word` has the form that goes with it. */
export function Total({ of, word }: { of: number | null; word: (of: number | null) => string }) {
  return (
    <>
      <b>
        <Count of={of} />
      </b>{" "}
      {word(of)}
    </>
  );
}

/** The name of the site: the title of its page as it is served, until it has another one. */
let site = document.title;

export function setSite(name: string): void {
  site = name;
}

let isFirstPage = true;

/** The title of a page: it gets the focus when the app shows another one, as after a link. */
export function Title({
  children,
  text,
  actions,
}: {
  children?: ComponentChildren;
  text: string;
  actions?: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${text} · ${site}`;
  }, [text]);
  // Before the browser runs anything else: later it would take the focus from a field.
  useLayoutEffect(() => {
    if (!isFirstPage) heading.current?.focus({ preventScroll: true });
    isFirstPage = false;
  }, []);
  return (
    <header class="title">
      <h1 tabIndex={-1} ref={heading}>
        {children ?? text}
      </h1>
      {actions}
    </header>
  );
}

/** An error whose message is for the user. */
export class UserError extends Error {}

/** Returns what went wrong: Plaza refused, it cannot be reached, or the page has a bug. */
function describeError(error: unknown): [title: string, detail: string] {
  if (error instanceof ProblemError) {
    const known = shared.problems[error.slug];
    return known === undefined ? [error.title, error.detail] : [known, ""];
  }
  if (error instanceof UserError) return [error.message, ""];
  const [title = "", detail = ""] = error instanceof NetworkError ? shared.noConnection : shared.bug;
  return [title, detail];
}

/** What went wrong. Without a connection it is tried again as soon as there is one. */
export function Problem({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  useReconnect(() => retry?.(), error instanceof NetworkError);
  if (error === undefined) return null;
  const [title, detail] = describeError(error);
  const { requestId } = error as Partial<PlazaError>;
  return (
    <div class="note problem" role="alert">
      <p>
        <b>{title}</b>
      </p>
      {detail !== "" && <p>{detail}</p>}
      {requestId !== undefined && (
        <p class="fine">
          {shared.request(requestId)} <Copy text={requestId} />
        </p>
      )}
      {retry && (
        <button type="button" class="small" onClick={retry}>
          {shared.retry}
        </button>
      )}
    </div>
  );
}

/** A button that copies a text, where the browser lets pages do so. */
export function Copy({ text }: { text: string }) {
  const [isDone, setDone] = useState(false);
  if (navigator.clipboard === undefined) return null; // the page did not come by https
  const copy = () =>
    void navigator.clipboard.writeText(text).then(
      () => setDone(true),
      () => undefined,
    );
  return (
    <button type="button" class="copy" onClick={copy} onBlur={() => setDone(false)}>
      {isDone ? shared.copied : shared.copy}
      <span class="hidden"> {text}</span>
    </button>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="note empty">
      <Icon name={icon} />
      <p>
        <b>{title}</b>
      </p>
      {children}
    </div>
  );
}

/** Grey shapes where something will be. */
export function Skeleton({ rows = 3 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status">
      <span class="hidden">{shared.loading}</span>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} aria-hidden="true">
          <i />
          <i />
          <i />
        </div>
      ))}
    </div>
  );
}

interface ListProps<Item> {
  of: Pages<Item>;
  empty: ComponentChildren;
  children: (item: Item) => JSX.Element;
  class?: string;
}

interface Identified {
  id?: string;
  order_id?: string;
  voucher_id?: string;
  user?: { id: string };
}

/** Returns the id of an item, by which its element is kept while others come and go. */
function keyOf(item: Identified): string | undefined {
  return item.id ?? item.order_id ?? item.voucher_id ?? item.user?.id;
}

/**
 * Keeps the focus near when what had it is gone: an item that was deleted, a button that is done.
 * The next item gets it, the last one, or the title of the page.
 */
function useKeptFocus() {
  const list = useRef<HTMLUListElement>(null);
  const focused = useRef(-1);
  useLayoutEffect(() => {
    if (focused.current < 0 || document.activeElement !== document.body) return;
    const left = list.current?.children ?? [];
    const next = left[Math.min(focused.current, left.length - 1)] ?? document.querySelector("h1");
    focused.current = -1;
    (next as HTMLElement | null)?.focus();
  });
  return {
    ref: list,
    onFocusIn: ({ target }: FocusEvent) => {
      focused.current = [...(list.current?.children ?? [])].findIndex((item) => item.contains(target as Node));
    },
    onFocusOut: ({ target }: FocusEvent) =>
      setTimeout(() => {
        const element = target as HTMLElement;
        const isThere = element.isConnected && !element.matches(":disabled");
        if (isThere && !list.current?.contains(document.activeElement)) focused.current = -1; // its user left
      }),
  };
}

/** A list with its states: loading, empty, broken, and more to come. */
export function List<Item extends object>({ of, empty, children, class: name = "list" }: ListProps<Item>) {
  const { items, error, isLoading } = of;
  const kept = useKeptFocus();
  if (items === undefined) return error === undefined ? <Skeleton /> : <Problem error={error} retry={of.reload} />;
  return (
    <>
      {items.length === 0 && !of.hasMore ? (
        empty
      ) : (
        <ul class={name} {...kept}>
          {items.map((item) => (
            <li key={keyOf(item)} tabIndex={-1}>
              {children(item)}
            </li>
          ))}
        </ul>
      )}
      <Problem error={error} retry={of.more} />
      {of.hasMore && error === undefined && (
        <button type="button" class="more" onClick={of.more} disabled={isLoading}>
          {isLoading ? shared.loadingMore : shared.more}
        </button>
      )}
    </>
  );
}

interface FieldProps {
  form: Form;
  name: string;
  label: string;
  help?: string;
  /** Makes it a text area. */
  rows?: number;
  type?: "text" | "tel" | "url" | "datetime-local";
  class?: string;
  autocomplete?: "off" | "tel" | "nickname" | "one-time-code";
  inputMode?: "decimal" | "numeric";
  placeholder?: string;
  defaultValue?: string;
  maxLength?: number;
  /** What the browser proposes. */
  options?: string[];
}

/** A labelled input and what is wrong with it. */
export function Field({ form, name, label, rows, help, type = "text", options, ...rest }: FieldProps) {
  const id = useId();
  const problem = form.field(name);
  const described = [problem && `${id}-problem`, help && `${id}-help`].filter(Boolean).join(" ");
  const control = {
    id,
    name,
    "aria-invalid": problem !== undefined,
    ...(described !== "" && { "aria-describedby": described }),
    ...(options && { list: `${id}-options` }),
    ...rest,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? <input type={type as "text"} {...control} /> : <textarea {...control} rows={rows} />}
      {options && (
        <datalist id={`${id}-options`}>
          {options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
      {problem !== undefined && (
        <p class="wrong" id={`${id}-problem`} role="alert">
          {problem}
        </p>
      )}
      {help !== undefined && (
        <p class="fine" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}

interface ConfirmProps {
  label: string;
  /** The question of the dialog; without one the button acts at once. */
  confirm?: string | undefined;
  /** What follows, below the question. */
  text?: string;
  /** What is typed before it acts. */
  word?: string;
  act: () => void;
  class?: string;
  disabled?: boolean;
}

/** How long the dialog only keeps: the second click of a double click is no answer. */
const MIN_READ_MS = 600;

/** A button that asks in a dialog before it acts. */
export function ConfirmButton({ label, confirm, text, word, act, class: name = "small", disabled }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  const [isRead, setRead] = useState(false);
  const [typed, setTyped] = useState("");
  const id = useId();
  useEffect(() => {
    if (!isOpen) return;
    dialog.current?.showModal();
    const timer = setTimeout(() => setRead(true), MIN_READ_MS);
    return () => clearTimeout(timer);
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    setRead(false);
    setTyped("");
  };
  const agree = () => {
    dialog.current?.close();
    act();
  };
  return (
    <>
      <button
        type="button"
        class={name}
        onClick={confirm === undefined ? act : () => setOpen(true)}
        disabled={disabled ?? false}
      >
        {label}
      </button>
      {isOpen && (
        <dialog ref={dialog} class="confirm" aria-labelledby={id} onClose={close}>
          <h2 id={id}>{confirm}</h2>
          {text !== undefined && <p>{text}</p>}
          {word !== undefined && (
            <div class="field">
              <label for={`${id}-word`}>{shared.typeWord(word)}</label>
              <input
                id={`${id}-word`}
                value={typed}
                autocomplete="off"
                onInput={(event) => setTyped(event.currentTarget.value)}
              />
            </div>
          )}
          <p class="buttons">
            <button type="button" autofocus onClick={() => dialog.current?.close()}>
              {shared.keep}
            </button>
            <button
              type="button"
              class="danger"
              disabled={!isRead || (word !== undefined && typed.trim().toLowerCase() !== word.toLowerCase())}
              onClick={agree}
            >
              {label}
            </button>
          </p>
        </dialog>
      )}
    </>
  );
}

interface Tab {
  label: string;
  value: string;
}

/** Links that choose what a page shows. */
export function Tabs({
  label,
  tabs,
  value,
  href,
}: {
  label: string;
  tabs: Tab[];
  value: string;
  href: (value: string) => string;
}) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.value} href={href(tab.value)} {...(tab.value === value && { "aria-current": "page" as const })}>
          {tab.label}
        </a>
      ))}
    </nav>
  );
}
