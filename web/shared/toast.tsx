/** Short messages at the edge of the page. */
import { NetworkError, ProblemError } from "plaza-client";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { NotSignedIn } from "./session.ts";
import { shared } from "./texts.ts";

const SHOWN_MS = 5000;
let show: (text: string) => void = () => undefined;

export function say(text: string): void {
  show(text);
}

/** Returns why something was not done, in the language of the page where it has words for it. */
export function describeRefusal(error: unknown): string {
  if (error instanceof ProblemError) return shared.problems[error.slug] ?? error.detail;
  return error instanceof NetworkError ? shared.noConnection.join(". ") : shared.failed;
}

/** Says why something was not done; a user who did not sign in knows it. */
export function sayRefusal(error: unknown): void {
  if (!(error instanceof NotSignedIn)) say(describeRefusal(error));
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
