import { render } from "preact";
import { startLanguage } from "shared/language.ts";
import { App } from "./app.tsx";
import { loadTexts } from "./texts.ts";
import "shared/style.css";
import "./style.css";

async function start(): Promise<void> {
  const root = document.getElementById("app");
  if (root === null) return;
  await startLanguage(loadTexts);
  root.replaceChildren(); // what the page showed before this script had arrived
  render(<App />, root);
}

void start();
