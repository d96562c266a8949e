import type { ComponentChildren } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { useForm } from "./hooks.ts";
import { IS_LOCAL, plaza } from "./plaza.ts";
import { go } from "./router.ts";
import { Field, Problem, Title } from "./ui.tsx";

interface Challenge {
  challenge: string;
  phone: string;
}

/** Sign-in in two steps: a phone number, then the code that was sent to it. */
export function SignIn({ then = "/", children }: { then?: string; children?: ComponentChildren }) {
  const [sent, setSent] = useState<Challenge | null>(null);
  return sent === null ? (
    <>
      <AskForCode onSent={setSent} />
      {children}
    </>
  ) : (
    <EnterCode sent={sent} then={then} back={() => setSent(null)} />
  );
}

function AskForCode({ onSent }: { onSent: (sent: Challenge) => void }) {
  const form = useForm(async (data) => {
    const phone = String(data.get("phone")).trim();
    const { challenge } = await plaza.sendCode(phone);
    showText(phone);
    onSent({ challenge, phone });
  });
  return (
    <>
      <Title text="Sign in" />
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p>We send you a code by text message. The first time, it makes your account.</p>
        <Field
          form={form}
          name="phone"
          label="Phone number"
          type="tel"
          autocomplete="tel"
          placeholder="+1 415 555 0123"
          help={IS_LOCAL ? "Any valid number: on this stack, texts appear in the corner." : "With the country code."}
        />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {form.isSending ? "Sending…" : "Send code"}
        </button>
      </form>
    </>
  );
}

function EnterCode({ sent, then, back }: { sent: Challenge; then: string; back: () => void }) {
  const form = useForm(async (data) => {
    await plaza.signIn(sent.challenge, String(data.get("code")).trim());
    hideText();
    go(then);
  });
  return (
    <>
      <Title text="Enter the code" />
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p>We sent six digits to {sent.phone}.</p>
        <Field
          form={form}
          name="code"
          label="Code"
          inputMode="numeric"
          autocomplete="one-time-code"
          maxLength={6}
          class="code"
        />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {form.isSending ? "Checking…" : "Sign in"}
        </button>{" "}
        <button type="button" class="quiet" onClick={back}>
          Another number
        </button>
      </form>
    </>
  );
}

const NO_TEXT = { phone: "", code: "" };
let setText: (text: typeof NO_TEXT) => void = () => undefined;
const hideText = () => setText(NO_TEXT);

/** Shows the code that the local stack sent to a phone; elsewhere a phone shows it. */
function showText(phone: string): void {
  if (!IS_LOCAL) return;
  void fetch(`/local/texts?phone=${encodeURIComponent(phone)}`)
    .then(async (response) => {
      const { code = "" } = (await response.json()) as { code?: string };
      setText({ phone, code });
    })
    .catch(hideText);
}

/** The corner in which the local stack shows its texts. */
export function Texts() {
  const [text, set] = useState(NO_TEXT);
  useLayoutEffect(() => {
    setText = set;
  }, []);
  const fill = () => {
    const input = document.querySelector<HTMLInputElement>("input.code");
    if (input === null) return;
    input.value = text.code;
    input.form?.requestSubmit();
  };
  return (
    <div class="text" aria-label="Text message" role="status" data-shown={text.code !== ""}>
      {text.code !== "" && (
        <>
          <p class="fine">Text to {text.phone}</p>
          <p>
            Your Plaza code is <b>{text.code}</b>
          </p>
          <button type="button" class="small" onClick={fill}>
            Use it
          </button>
        </>
      )}
    </div>
  );
}
