import { useForm, useRead } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { Field, Problem, Skeleton, Title } from "shared/ui.tsx";
import { Badge, Outcome, Table, Time, useAction } from "../parts.tsx";
import { enrollPasskey } from "../passkeys.ts";

const METHODS = { code: "text message", id_token: "issuer", passkey: "passkey", operate: "operate" };

/** The operator's own sessions and passkeys. */
export function Account() {
  const sessions = useRead("own-sessions", (signal) => plaza.get("/users/me/sessions", { signal }));
  const passkeys = useRead("own-passkeys", (signal) => plaza.get("/passkeys", { signal }));
  const action = useAction();
  const form = useForm(async (data) => {
    await enrollPasskey(String(data.get("name")).trim());
    passkeys.reload();
  });
  const endSession = (id: string) =>
    action.run(async () => {
      await plaza.delete("/users/me/sessions/{session_id}", { path: { session_id: id } });
      sessions.reload();
      return "The session has ended.";
    });
  const endPasskey = (id: string) =>
    action.run(async () => {
      await plaza.delete("/passkeys/{passkey_id}", { path: { passkey_id: id } });
      passkeys.reload();
      return "The passkey has ended.";
    });
  return (
    <>
      <Title text="Account" />
      <Outcome of={action} />
      <h2>Sessions</h2>
      <Problem error={sessions.error} retry={sessions.reload} />
      {sessions.data === undefined ? (
        sessions.error === undefined && <Skeleton rows={2} />
      ) : (
        <Table
          label="Sessions"
          head={["Client", "By", "Role", "Signed in", "Ends", "Action"]}
          empty="There is no session."
          rows={sessions.data.items.map((session) => [
            session.client ?? "–",
            session.method === null ? "–" : METHODS[session.method],
            session.role,
            <Time at={session.signed_in_at} />,
            <Time at={session.expires_at} />,
            session.current ? (
              <Badge tone="good">this one</Badge>
            ) : (
              <button type="button" class="small" disabled={action.isBusy} onClick={() => void endSession(session.id)}>
                End
              </button>
            ),
          ])}
        />
      )}
      <h2>Passkeys</h2>
      <Problem error={passkeys.error} retry={passkeys.reload} />
      {passkeys.data !== undefined && (
        <Table
          label="Passkeys"
          head={["Name", "Enrolled", "Used", "Action"]}
          empty="There is no passkey."
          rows={passkeys.data.items.map((passkey) => [
            passkey.name,
            <Time at={passkey.created_at} />,
            <Time at={passkey.used_at} />,
            <button
              type="button"
              class="small"
              disabled={action.isBusy}
              onClick={() => void endPasskey(passkey.passkey_id)}
            >
              End
            </button>,
          ])}
        />
      )}
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p class="fine">A passkey is added or ended within five minutes of a sign-in.</p>
        <Field form={form} name="name" label="Name of a further device" autocomplete="off" maxLength={60} />
        <Problem error={form.problem} />
        <button type="submit" disabled={form.isSending}>
          Add a passkey
        </button>
      </form>
    </>
  );
}
