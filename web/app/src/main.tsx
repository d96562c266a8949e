import { render } from "preact";
import { App } from "./app.tsx";
import "shared/style.css";
import "./style.css";

const root = document.getElementById("app");
if (root) {
  root.replaceChildren(); // what the page showed before this script had arrived
  render(<App />, root);
}
