/** The texts of the console in the language that is shown. */
import { showTexts } from "shared/texts.ts";
import { setSite } from "shared/ui.tsx";
import { en } from "./texts/en.ts";

export type Texts = typeof en;

export let t: Texts = en;

export const loadTexts = showTexts(
  en,
  { zh: () => import("./texts/zh.ts"), ru: () => import("./texts/ru.ts") },
  (texts) => {
    t = texts;
    setSite(texts.site);
  },
);

/** Returns a word of the API, such as a state, in the language that is shown; as it is where there is none. */
export function word(of: string): string {
  return t.words[of] ?? of;
}
