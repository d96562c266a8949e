/** Sign-in of operators: a passkey, the first of which is enrolled with a code. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useForm } from "shared/hooks.ts";
import { hasEnded } from "shared/session.ts";
import { Field, Problem, Title } from "shared/ui.tsx";
import { Outcome, useAction } from "./parts.tsx";
import { enrollPasskey, HAS_PASSKEYS, signInWithPasskey } from "./passkeys.ts";

export function OperatorSignIn({ children }: { children?: ComponentChildren }) {
  const action = useAction();
  const [isNew, setNew] = useState(false);
  if (isNew) return <Enroll back={() => setNew(false)} />;
  return (
    <>
      <Title text="Sign in" />
      <section class="narrow">
        <p>
          {hasEnded()
            ? "Your session has ended. Sign in again to go on."
            : "Operators sign in with a passkey. A session ends after 12 hours."}
        </p>
        {HAS_PASSKEYS || <p>This browser has no passkeys, or this page has no HTTPS.</p>}
        <p class="buttons">
          <button
            type="button"
            class="primary"
            disabled={action.isBusy || !HAS_PASSKEYS}
            onClick={() => void action.run(signInWithPasskey)}
          >
            Sign in with a passkey
          </button>{" "}
          <button type="button" class="quiet" onClick={() => setNew(true)} disabled={!HAS_PASSKEYS}>
            I have a code
          </button>
        </p>
        <Outcome of={action} />
      </section>
      {children}
    </>
  );
}

function Enroll({ back }: { back: () => void }) {
  const form = useForm(async (data) => {
    await enrollPasskey(String(data.get("name")).trim(), String(data.get("code")).trim());
    await signInWithPasskey();
  });
  return (
    <>
      <Title text="Enroll a passkey" />
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p>
          The code is made by <code>make-passkey-code</code>. It works once, within an hour, for the device that you use
          now.
        </p>
        <Field form={form} name="code" label="Code" autocomplete="off" maxLength={32} />
        <Field form={form} name="name" label="Name of this device" autocomplete="off" maxLength={60} />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {form.isSending ? "Enrolling…" : "Enroll a passkey"}
        </button>{" "}
        <button type="button" class="quiet" onClick={back}>
          Back
        </button>
      </form>
    </>
  );
}
