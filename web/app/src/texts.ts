/** The texts of the app in the language that is shown. */
import { showTexts } from "shared/texts.ts";
import { en } from "./texts/en.ts";

export type Texts = typeof en;

export let t: Texts = en;

export const loadTexts = showTexts(
  en,
  { zh: () => import("./texts/zh.ts"), ru: () => import("./texts/ru.ts") },
  (texts) => {
    t = texts;
  },
);
