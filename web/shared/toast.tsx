/** Short messages at the edge of the page. */
import { PlazaError } from "plaza-client";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { NotSignedIn } from "./session.ts";

const SHOWN_MS = 5000;
let show: (text: string) => void = () => undefined;

export function say(text: string): void {
  show(text);
}

/** Says why something was not done; a user who did not sign in knows it. */
export function sayRefusal(error: unknown): void {
  if (!(error instanceof NotSignedIn)) say(error instanceof PlazaError ? error.message : "That did not work.");
}

export function Toasts() {
  const [text, setText] = useState("");
  useLayoutEffect(() => {
    show = setText;
  }, []);
  useEffect(() => {
    if (text === "") return;
    const timer = setTimeout(() => setText(""), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div class="toast" role="status" data-shown={text !== ""}>
      {text}
    </div>
  );
}
