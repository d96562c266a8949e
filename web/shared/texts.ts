/** The texts that all pages share, in the language that is shown. */
import { en } from "./texts/en.ts";

export type SharedTexts = typeof en;

export let shared: SharedTexts = en;

/** Sets the texts of the language that is shown from now on. */
export function setShared(texts: SharedTexts): void {
  shared = texts;
}
