/** How a page begins: its texts, then its parts. */
import { type ComponentType, render } from "preact";
import { type Language, startLanguage } from "./language.ts";

/** Shows a page in the language of the device or of the user; `load` sets its texts. */
export async function start(App: ComponentType, load: (language: Language) => Promise<void>): Promise<void> {
  const root = document.getElementById("app");
  if (root === null) return;
  await startLanguage(load);
  root.replaceChildren(); // what the page showed before this script had arrived
  render(<App />, root);
}
