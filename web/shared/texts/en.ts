/** The texts that all pages share, in English. */
import { formatNumber } from "../language.ts";

/** What is wrong with a field, by the code that the API sends; it may send others. */
const fields: Record<string, (limit: number | null) => string> = {
  missing: () => "This must not be empty.",
  "too-short": (limit) =>
    limit === null || limit <= 1 ? "This must not be empty." : `At least ${formatNumber(limit)} characters are needed.`,
  "too-long": (limit) => `At most ${formatNumber(limit ?? 0)} characters are possible.`,
  "too-small": (limit) => `At least ${formatNumber(limit ?? 0, 3)} is possible.`,
  "too-large": (limit) => (limit === null ? "This is too large." : `At most ${formatNumber(limit, 3)} is possible.`),
  "wrong-type": () => "This must be a number.",
  "wrong-form": () => "This is not in the expected form.",
  "not-listed": () => "This is none of the possible values.",
  "too-early": () => "This must be later.",
  "control-character": () => "This has a character that cannot be stored, such as a line break.",
  "unknown-id": () => "There is none with this id.",
  unassigned: () => "No phone has this number.",
  "not-served": () => "No text messages are sent to such numbers.",
};

/** Problems by their slugs. Without one, the words of the API are shown, which are English. */
const problems: Record<string, string> = {
  "changed-meanwhile": "This was changed since you opened it. Reload the page, then make your change again.",
};

export const en = {
  start: (name: string) => `${name}, start`,
  main: "Main",
  language: "Language",
  deviceLanguage: "As this device",
  skip: "Skip to content",
  notFound: { title: "Not found", text: "There is no such page.", back: "To the start" },
  offline: "You are offline. What you see may be old; it is read again when you are back.",
  loading: "Loading",
  loadingMore: "Loading…",
  more: "Show more",
  retry: "Try again",
  keep: "Keep it as it is",
  typeWord: (word: string) => `Type “${word}” to go on.`,
  request: (id: string) => `Request ${id}`,
  copy: "Copy",
  copied: "Copied.",
  failed: "That did not work.",
  crashed: "Something went wrong",
  noConnection: ["No connection", "Plaza cannot be reached. Check your connection."],
  bug: ["This page has an error", "It is not your connection. Reload the page; what you did before is stored."],
  problems,
  fields,
  signIn: {
    title: "Sign in",
    notNow: "Not now",
    ended: "Your session has ended. Sign in again to go on; what you wrote is still there.",
    reopened: "Your account is open again, and nothing is erased. Your posts are back in a minute.",
    again: "For this you sign in again: we send you a code by text message.",
    how: "We send you a code by text message. The first time, it makes your account.",
    phone: "Phone number",
    local: "Any valid number: on this stack, texts appear in the corner.",
    country: "With the country code.",
    sending: "Sending…",
    send: "Send code",
    enter: "Enter the code",
    sent: (phone: string) => `We sent six digits to ${phone}.`,
    code: "Code",
    checking: "Checking…",
    another: "Another number",
    message: "Text message",
    to: (phone: string) => `Text to ${phone}`,
    yourCode: "Your Plaza code is {code}",
    use: "Use it",
  },
};
