import { useForm, useRead } from "shared/hooks.ts";
import { LanguageChoice } from "shared/language-choice.tsx";
import { plaza } from "shared/plaza.ts";
import { ConfirmButton, Field, Problem, Skeleton, Title } from "shared/ui.tsx";
import { Badge, Outcome, Table, Time, useAction } from "../parts.tsx";
import { enrollPasskey, withFreshSignIn } from "../passkeys.ts";
import { t, word } from "../texts.ts";

/** The operator's own sessions and passkeys. */
export function Account() {
  const sessions = useRead("own-sessions", (signal) => plaza.get("/users/me/sessions", { signal }));
  const passkeys = useRead("own-passkeys", (signal) => plaza.get("/passkeys", { signal }));
  const action = useAction();
  const form = useForm(async (data) => {
    await withFreshSignIn(() => enrollPasskey(String(data.get("name")).trim()));
    passkeys.reload();
  });
  const endSession = (id: string) =>
    action.run(async () => {
      await plaza.delete("/users/me/sessions/{session_id}", { path: { session_id: id } });
      sessions.reload();
      return t.account.sessionEnded;
    });
  const endPasskey = (id: string) =>
    action.run(async () => {
      await withFreshSignIn(() => plaza.delete("/passkeys/{passkey_id}", { path: { passkey_id: id } }));
      passkeys.reload();
      return t.account.passkeyEnded;
    });
  return (
    <>
      <Title
        text={t.account.title}
        actions={
          <button type="button" class="small on-phone" onClick={() => void action.run(() => plaza.signOut())}>
            {t.access.signOut}
          </button>
        }
      />
      <Outcome of={action} />
      <h2>{t.account.sessions}</h2>
      <Problem error={sessions.error} retry={sessions.reload} />
      {sessions.data === undefined ? (
        sessions.error === undefined && <Skeleton rows={2} />
      ) : (
        <Table
          label={t.account.sessions}
          head={[t.account.client, t.account.by, t.account.role, t.account.signedIn, t.account.ends, t.action]}
          empty={t.account.noSession}
          rows={sessions.data.items.map((session) => [
            session.client ?? "–",
            session.method === null ? "–" : word(session.method),
            word(session.role),
            <Time at={session.signed_in_at} />,
            <Time at={session.expires_at} />,
            session.current ? (
              <Badge tone="good">{t.account.current}</Badge>
            ) : (
              <ConfirmButton
                label={t.account.end}
                confirm={t.account.endSession}
                disabled={action.isBusy}
                act={() => void endSession(session.id)}
              />
            ),
          ])}
        />
      )}
      <h2>{t.account.passkeys}</h2>
      <Problem error={passkeys.error} retry={passkeys.reload} />
      {passkeys.data === undefined ? (
        passkeys.error === undefined && <Skeleton rows={1} />
      ) : (
        <Table
          label={t.account.passkeys}
          head={[t.account.name, t.account.enrolled, t.account.used, t.action]}
          empty={t.account.noPasskey}
          rows={passkeys.data.items.map((passkey) => [
            passkey.name,
            <Time at={passkey.created_at} />,
            <Time at={passkey.used_at} />,
            <ConfirmButton
              label={t.account.end}
              confirm={t.account.endPasskey}
              disabled={action.isBusy}
              act={() => void endPasskey(passkey.passkey_id)}
            />,
          ])}
        />
      )}
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p class="fine">{t.account.when}</p>
        <Field form={form} name="name" label={t.account.another} autocomplete="off" maxLength={60} />
        <Problem error={form.problem} />
        <button type="submit" disabled={form.isSending}>
          {t.account.add}
        </button>
      </form>
      <LanguageChoice />
    </>
  );
}
