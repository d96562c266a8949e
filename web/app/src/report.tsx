/** A report of content or of a user to the moderators. */
import type { Schemas } from "plaza-client";
import { useRef } from "preact/hooks";
import { useDraft } from "shared/drafts.ts";
import { useForm, useSession } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { say } from "shared/toast.tsx";
import { Field, Problem } from "shared/ui.tsx";
import { t } from "./texts.ts";

type Target = { type: keyof typeof t.report.title; id: string };
type Reason = Schemas["ReportRequest"]["reason"];

/** A button that opens a form in a dialog; users cannot report what is their own. */
export function ReportButton({ target, ownerId }: { target: Target; ownerId: string }) {
  const session = useSession();
  const dialog = useRef<HTMLDialogElement>(null);
  const draft = useDraft(`report of ${target.type} ${target.id}`);
  const close = () => dialog.current?.close();
  const open = () => withSession(async () => dialog.current?.showModal()).catch(() => undefined);
  const form = useForm(async (data) => {
    const details = String(data.get("details")).trim();
    const reason = String(data.get("reason")) as Reason;
    const body = { target, reason, details: details === "" ? null : details };
    await withSession(() => plaza.post("/reports", { body }));
    draft.clear();
    draft.form.ref.current?.reset();
    close();
    say(t.report.thanks);
  });
  if (session?.user.id === ownerId) return null;
  return (
    <>
      <button type="button" class="small quiet" onClick={() => void open()}>
        {t.report.button}
      </button>
      <dialog ref={dialog} aria-label={t.report.title[target.type]}>
        <form noValidate onSubmit={form.submit} {...draft.form}>
          <h2>{t.report.title[target.type]}</h2>
          <fieldset class="choice">
            <legend>{t.report.what}</legend>
            {Object.entries(t.report.reasons).map(([reason, text], index) => (
              <label key={reason}>
                <input type="radio" name="reason" value={reason} defaultChecked={index === 0} />
                {text}
              </label>
            ))}
          </fieldset>
          <Field form={form} name="details" label={t.report.details} rows={3} help={t.report.help} />
          <Problem error={form.problem} />
          <button type="submit" class="primary" disabled={form.isSending}>
            {t.send}
          </button>{" "}
          <button type="button" class="quiet" onClick={close}>
            {t.cancel}
          </button>
        </form>
      </dialog>
    </>
  );
}
