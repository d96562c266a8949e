/** The texts of the app in the language that is shown. The other languages are loaded when they are. */
import type { Language } from "shared/language.ts";
import { en as sharedEnglish } from "shared/texts/en.ts";
import { setShared } from "shared/texts.ts";
import { en } from "./texts/en.ts";

export type Texts = typeof en;

export let t: Texts = en;

export async function loadTexts(language: Language): Promise<void> {
  if (language === "en") {
    t = en;
    setShared(sharedEnglish);
    return;
  }
  const catalogue = await (language === "zh" ? import("./texts/zh.ts") : import("./texts/ru.ts"));
  t = catalogue.app;
  setShared(catalogue.shared);
}
