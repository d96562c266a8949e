/** The language of a page, and how it writes numbers, prices, times, distances and lists. */
import { useLayoutEffect, useState } from "preact/hooks";

/** The languages that there are catalogues of, each by its own name. */
export const LANGUAGES = { en: "English", zh: "中文", ru: "Русский" } as const;
export type Language = keyof typeof LANGUAGES;

const STORED = "plaza-language";
const WEEK_S = 7 * 86_400;
const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
let language: Language = "en";
/** The language with the region of the device, which decides the form of numbers and dates. */
let locale = "en";
let load: (language: Language) => Promise<void> = () => Promise.resolve();
const listeners = new Set<() => void>();
const formats = new Map<string, unknown>();

function isLanguage(name: string | null): name is Language {
  return name !== null && name in LANGUAGES;
}

/** Returns the language that the user chose; null for the device's. */
export function chosenLanguage(): Language | null {
  try {
    const stored = localStorage.getItem(STORED);
    return isLanguage(stored) ? stored : null;
  } catch {
    return null; // the browser refuses to store anything
  }
}

/** Returns the first language of the device that there is a catalogue of; English without one. */
function deviceLanguage(): Language {
  for (const tag of navigator.languages) {
    const name = tag.slice(0, 2).toLowerCase();
    if (isLanguage(name)) return name;
  }
  return "en";
}

/** Shows the language that the user chose or that the device has. `how` loads a catalogue. */
export async function startLanguage(how: (language: Language) => Promise<void>): Promise<void> {
  load = how;
  await show(chosenLanguage() ?? deviceLanguage());
}

/** Keeps what the user chose, null for the language of the device, and shows it. */
export async function chooseLanguage(chosen: Language | null): Promise<void> {
  try {
    if (chosen === null) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, chosen);
  } catch {
    // It is shown until the page is closed.
  }
  await show(chosen ?? deviceLanguage());
}

async function show(next: Language): Promise<void> {
  try {
    await load(next);
    language = next;
  } catch {
    await load("en"); // which is part of the page: without a network there may be no other
    language = "en";
  }
  locale = navigator.languages.find((tag) => tag.slice(0, 2).toLowerCase() === language) ?? language;
  formats.clear();
  document.documentElement.lang = language;
  document.documentElement.dir = directionOf(locale);
  for (const listener of listeners) listener();
}

function directionOf(tag: string): "ltr" | "rtl" {
  return /^(ar|fa|he|ur)\b/.test(tag) ? "rtl" : "ltr";
}

/** Renders again when another language is shown; returns it. */
export function useLanguage(): Language {
  const [shown, setShown] = useState(language);
  useLayoutEffect(() => {
    const follow = () => setShown(language);
    listeners.add(follow);
    return () => void listeners.delete(follow);
  }, []);
  return shown;
}

function keep<Format>(key: string, make: () => Format): Format {
  const format = (formats.get(key) as Format | undefined) ?? make();
  formats.set(key, format);
  return format;
}

/** An exact number: 1,234,567; a dash for one that is not known. */
export function formatNumber(value: number | null | undefined, fractionDigits = 0): string {
  if (value === null || value === undefined) return "–";
  const make = () => new Intl.NumberFormat(locale, { maximumFractionDigits: fractionDigits });
  return keep(`number ${fractionDigits}`, make).format(value);
}

/** A price in hundredths of its currency. */
export function formatPrice({ cents, currency }: { cents: number; currency: string }): string {
  const make = () => new Intl.NumberFormat(locale, { style: "currency", currency });
  return keep(`price ${currency}`, make).format(cents / 100);
}

function formatUnit(value: number, unit: string, digits = 0, minimumFractionDigits = 0): string {
  const options = { style: "unit", unit, minimumFractionDigits, maximumFractionDigits: digits } as const;
  return keep(`unit ${unit} ${digits}`, () => new Intl.NumberFormat(locale, options)).format(value);
}

/** A distance: 412 m, 2.0 km. */
export function formatDistance(metres: number): string {
  return metres < 1000 ? formatUnit(metres, "meter") : formatUnit(metres / 1000, "kilometer", 1, 1);
}

/** A duration with one unit: 0.4 sec, 12 sec, 5 min, 3 hr, 2 days; a dash for one that is not known. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 120) return formatUnit(seconds, "second", seconds < 10 ? 1 : 0);
  if (seconds < 7200) return formatUnit(seconds / 60, "minute");
  if (seconds < 172_800) return formatUnit(seconds / 3600, "hour");
  return formatUnit(seconds / 86_400, "day");
}

/** A size: 512 byte, 1.2 kB, 3.4 MB. */
export function formatBytes(bytes: number): string {
  if (bytes < 1000) return formatUnit(bytes, "byte");
  return bytes < 1e6 ? formatUnit(bytes / 1e3, "kilobyte", 1) : formatUnit(bytes / 1e6, "megabyte", 1);
}

/** A time, in the time zone of the device unless `options` name another one. */
export function formatTime(at: string | Date, options: Intl.DateTimeFormatOptions): string {
  const make = () => new Intl.DateTimeFormat(locale, options);
  return keep(`time ${JSON.stringify(options)}`, make).format(new Date(at));
}

/** How long ago something was; the date after a week. */
export function formatAgo(at: string): string {
  const ageS = Math.max(0, (Date.now() - Date.parse(at)) / 1000);
  if (ageS > WEEK_S) return formatTime(at, { dateStyle: "medium" });
  const [unit, lengthS] = UNITS.find(([, length]) => ageS >= length) ?? ["second", 1];
  const make = () => new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
  return keep("ago", make).format(-Math.floor(ageS / lengthS), unit);
}

/** Names in a sentence: ada, grace and 3 others. */
export function formatList(items: string[]): string {
  const make = () => new Intl.ListFormat(locale, { style: "long", type: "conjunction" });
  return keep("list", make).format(items);
}

/** The days of the week from Monday on, whole and short. */
export function weekdays(): { long: string; short: string }[] {
  return Array.from({ length: 7 }, (_, day) => {
    const monday = new Date(Date.UTC(2024, 0, 1 + day));
    const name = (weekday: "long" | "short") => formatTime(monday, { weekday, timeZone: "UTC" });
    return { long: name("long"), short: name("short") };
  });
}

type Forms = { other: string } & Partial<Record<Intl.LDMLPluralRule, string>>;

/** The form of a word that goes with a number: `count(3, { one: "like", other: "likes" })`. */
export function count(of: number | null, forms: Forms): string {
  const rule = keep("plural", () => new Intl.PluralRules(language)).select(of ?? 0);
  return forms[rule] ?? forms.other;
}

/** Returns all time zones; none in an engine that does not know them. */
export function timeZones(): string[] {
  return "supportedValuesOf" in Intl ? Intl.supportedValuesOf("timeZone") : [];
}

/** Returns the time zone of the device. */
export function deviceZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Puts parts into a text with their names in braces: `fill("until {time}", { time: <b>…</b> })`. */
export function fill<Part>(text: string, parts: Record<string, Part>): (string | Part)[] {
  return text.split(/\{(\w+)\}/).map((piece, index) => (index % 2 === 0 ? piece : (parts[piece] ?? piece)));
}

/** Returns the word for a value of the API; a value that this page does not know, as it is. */
export function wordOf(words: Record<string, string>, value: string): string {
  return words[value] ?? value;
}
