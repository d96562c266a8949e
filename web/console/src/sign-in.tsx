/** Sign-in of operators: a passkey, the first of which is enrolled with a code. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useForm } from "shared/hooks.ts";
import { fill } from "shared/language.ts";
import { LanguageChoice } from "shared/language-choice.tsx";
import { hasEnded } from "shared/session.ts";
import { Field, Problem, Title } from "shared/ui.tsx";
import { Outcome, useAction } from "./parts.tsx";
import { enrollPasskey, HAS_PASSKEYS, signInWithPasskey } from "./passkeys.ts";
import { t } from "./texts.ts";

export function OperatorSignIn({ children }: { children?: ComponentChildren }) {
  const action = useAction();
  const [isNew, setNew] = useState(false);
  if (isNew) return <Enroll back={() => setNew(false)} />;
  return (
    <>
      <Title text={t.signIn.title} />
      <section class="narrow">
        <p>{hasEnded() ? t.signIn.ended : t.signIn.how}</p>
        {HAS_PASSKEYS || <p>{t.signIn.impossible}</p>}
        <p class="buttons">
          <button
            type="button"
            class="primary"
            disabled={action.isBusy || !HAS_PASSKEYS}
            onClick={() => void action.run(signInWithPasskey)}
          >
            {t.signIn.passkey}
          </button>{" "}
          <button type="button" class="quiet" onClick={() => setNew(true)} disabled={!HAS_PASSKEYS}>
            {t.signIn.haveCode}
          </button>
        </p>
        <Outcome of={action} />
        <LanguageChoice />
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
      <Title text={t.signIn.enroll} />
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p>{fill(t.signIn.codeHelp, { command: <code key="command">make-passkey-code</code> })}</p>
        <Field form={form} name="code" label={t.signIn.code} autocomplete="off" maxLength={32} />
        <Field form={form} name="name" label={t.signIn.device} autocomplete="off" maxLength={60} />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {form.isSending ? t.signIn.enrolling : t.signIn.enroll}
        </button>{" "}
        <button type="button" class="quiet" onClick={back}>
          {t.signIn.back}
        </button>
      </form>
    </>
  );
}
