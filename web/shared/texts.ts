/** The texts that all pages share, and how a page loads its own, in the language that is shown. */
import type { Language } from "./language.ts";
import { en } from "./texts/en.ts";

export type SharedTexts = typeof en;

export let shared: SharedTexts = en;

/** The texts of a page in one language, with those that all pages share. */
interface Catalogue<Texts> {
  page: Texts;
  shared: SharedTexts;
}

/** Returns how a page shows a language: English is part of it, the others are loaded. `set` takes its texts. */
export function showTexts<Texts>(
  english: Texts,
  others: Record<Exclude<Language, "en">, () => Promise<Catalogue<Texts>>>,
  set: (texts: Texts) => void,
): (language: Language) => Promise<void> {
  return async (language) => {
    const catalogue = language === "en" ? { page: english, shared: en } : await others[language]();
    shared = catalogue.shared;
    set(catalogue.page);
  };
}
