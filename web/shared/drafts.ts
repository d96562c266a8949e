/** Texts that are not sent yet. The tab keeps them while its user reads other pages, or signs in again. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { onLeave, shownUser } from "./session.ts";

const PREFIX = "plaza-draft ";

interface Stored {
  /** Who wrote it; null before the sign-in. */
  user: string | null;
  fields: Record<string, string>;
}

export interface Draft {
  /** Attributes of the form. */
  form: { ref: { current: HTMLFormElement | null }; onInput: () => void };
  /** Forgets the draft: it was sent or discarded. */
  clear: () => void;
}

/** Keeps the fields of a form under `name` until they are sent, and fills them in again. */
export function useDraft(name: string): Draft {
  const ref = useRef<HTMLFormElement>(null);
  const key = PREFIX + name;
  useLayoutEffect(() => {
    const stored = read(key);
    if (stored === null || ref.current === null) return;
    if (stored.user !== null && shownUser() !== null && stored.user !== shownUser()) return;
    fill(ref.current, stored.fields);
  }, [key]);
  const keep = () => {
    if (ref.current === null) return;
    const fields: Record<string, string> = {};
    for (const [field, value] of new FormData(ref.current)) if (typeof value === "string") fields[field] = value;
    write(key, { user: shownUser(), fields });
  };
  return { form: { ref, onInput: keep }, clear: () => write(key, null) };
}

function fill(form: HTMLFormElement, fields: Record<string, string>): void {
  for (const control of form.querySelectorAll<HTMLInputElement | HTMLTextAreaElement>("input, textarea")) {
    const value = fields[control.name];
    if (value === undefined) continue;
    if (control.type !== "radio") control.value = value;
    else if (control.value === value && control instanceof HTMLInputElement) {
      control.checked = true;
      control.dispatchEvent(new Event("change", { bubbles: true })); // for forms that depend on it
    }
  }
}

function read(key: string): Stored | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function write(key: string, stored: Stored | null): void {
  try {
    if (stored === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(stored));
  } catch {
    // Refused or full: the draft lasts as long as the form is shown.
  }
}

onLeave(() => {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key);
  } catch {
    // There is none.
  }
});
