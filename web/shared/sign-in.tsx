/** Sign-in in two steps: a phone number, then the code that was sent to it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useForm, useSession } from "./hooks.ts";
import { fill } from "./language.ts";
import { IS_LOCAL, plaza } from "./plaza.ts";
import { hasEnded, setAsking } from "./session.ts";
import { shared } from "./texts.ts";
import { say } from "./toast.tsx";
import { Field, Problem, Title } from "./ui.tsx";

interface Challenge {
  challenge: string;
  phone: string;
}
type Heading = (properties: { text: string }) => JSX.Element;

/** The page. `then`: the route that follows it; without one, what contains it shows something else. */
export function SignIn({ then, children }: { then?: string; children?: ComponentChildren }) {
  const session = useSession();
  useEffect(() => {
    // Instead of this entry of the history, so that Back does not lead to the form again.
    if (session !== null && then?.startsWith("/")) location.replace(`#${then}`);
  }, [session]);
  return <Steps heading={Title}>{children}</Steps>;
}

function Steps({ heading, children }: { heading: Heading; children?: ComponentChildren }) {
  const [sent, setSent] = useState<Challenge | null>(null);
  return sent === null ? (
    <>
      <AskForCode heading={heading} onSent={setSent} />
      {children}
    </>
  ) : (
    <EnterCode heading={heading} sent={sent} back={() => setSent(null)} />
  );
}

let setDialog: (isOpen: boolean) => void = () => undefined;
let answers: ((isSignedIn: boolean) => void)[] = [];
/** The session that was too old when the dialog was opened; undefined without one. */
let oldToken: string | undefined;
const isSignedIn = () => plaza.session !== null && plaza.session.token !== oldToken;
setAsking(
  (isAgain) =>
    new Promise((answer) => {
      answers.push(answer);
      oldToken = isAgain ? plaza.session?.token : undefined;
      setDialog(true);
    }),
);

function answer(): void {
  const waiting = answers;
  const result = isSignedIn();
  answers = [];
  oldToken = undefined;
  for (const resolve of waiting) resolve(result);
}

/** The dialog over the page in which a user signs in who wants something that needs a session. */
export function SignInDialog() {
  const session = useSession();
  const [isOpen, setOpen] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    setDialog = setOpen;
  }, []);
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
  }, [isOpen]);
  useEffect(() => {
    if (isOpen && isSignedIn()) dialog.current?.close(); // here, or in another tab
  }, [isOpen, session]);
  const close = () => {
    hideText();
    setOpen(false);
    answer();
  };
  if (!isOpen) return null;
  return (
    <dialog ref={dialog} class="sign-in" aria-label={shared.signIn.title} onClose={close}>
      <Steps heading={DialogHeading} />
      <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
        {shared.signIn.notNow}
      </button>
      <Texts in="dialog" />
    </dialog>
  );
}

/** The heading of a step. The first field gets the focus: a dialog is announced by its label. */
function DialogHeading({ text }: { text: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.parentElement?.querySelector("input")?.focus(), []);
  return <h2 ref={heading}>{text}</h2>;
}

function AskForCode({ heading: Heading, onSent }: { heading: Heading; onSent: (sent: Challenge) => void }) {
  const form = useForm(async (data) => {
    const phone = String(data.get("phone")).trim();
    const { challenge } = await plaza.sendCode(phone);
    showText(phone);
    onSent({ challenge, phone });
  });
  return (
    <>
      <Heading text={shared.signIn.title} />
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p>{oldToken !== undefined ? shared.signIn.again : hasEnded() ? shared.signIn.ended : shared.signIn.how}</p>
        <Field
          form={form}
          name="phone"
          label={shared.signIn.phone}
          type="tel"
          autocomplete="tel"
          placeholder="+1 415 555 0123"
          help={IS_LOCAL ? shared.signIn.local : shared.signIn.country}
        />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {form.isSending ? shared.signIn.sending : shared.signIn.send}
        </button>
      </form>
    </>
  );
}

function EnterCode({ heading: Heading, sent, back }: { heading: Heading; sent: Challenge; back: () => void }) {
  const form = useForm(async (data) => {
    const session = await plaza.signIn(sent.challenge, String(data.get("code")).trim());
    hideText();
    if (session.reopened) say(shared.signIn.reopened);
  });
  return (
    <>
      <Heading text={shared.signIn.enter} />
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p>{shared.signIn.sent(sent.phone)}</p>
        <Field
          form={form}
          name="code"
          label={shared.signIn.code}
          inputMode="numeric"
          autocomplete="one-time-code"
          maxLength={6}
          class="code"
        />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {form.isSending ? shared.signIn.checking : shared.signIn.title}
        </button>{" "}
        <button type="button" class="quiet" onClick={back}>
          {shared.signIn.another}
        </button>
      </form>
    </>
  );
}

const NO_TEXT = { phone: "", code: "" };
let text = NO_TEXT;
const textListeners = new Set<(now: typeof NO_TEXT) => void>();
const hideText = () => setText(NO_TEXT);

function setText(now: typeof NO_TEXT): void {
  text = now;
  for (const listener of textListeners) listener(now);
}

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

/**
 * The corner in which the local stack shows its texts: of the page, or of the dialog, outside of which
 * nothing can be used while it is open.
 */
export function Texts({ in: where = "page" }: { in?: "page" | "dialog" }) {
  const [now, set] = useState(text);
  const isShown = now.code !== "" && (where === "dialog") === answers.length > 0;
  useLayoutEffect(() => {
    textListeners.add(set);
    return () => void textListeners.delete(set);
  }, []);
  const enter = () => {
    const input = document.querySelector<HTMLInputElement>(
      where === "dialog" ? "dialog[open] input.code" : "input.code",
    );
    if (input === null) return;
    input.value = now.code;
    input.form?.requestSubmit();
  };
  if (where === "dialog" && !isShown) return null;
  return (
    <div class="text" aria-label={shared.signIn.message} role="status" data-shown={isShown}>
      {isShown && (
        <>
          <p class="fine">{shared.signIn.to(now.phone)}</p>
          <p>{fill(shared.signIn.yourCode, { code: <b key="code">{now.code}</b> })}</p>
          <button type="button" class="small" onClick={enter}>
            {shared.signIn.use}
          </button>
        </>
      )}
    </div>
  );
}
