/** Short messages at the edge of the page. */
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

const SHOWN_MS = 5000;
let show: (text: string) => void = () => undefined;

export function say(text: string): void {
  show(text);
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
