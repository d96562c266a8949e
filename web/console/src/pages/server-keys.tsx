import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useForm, useRead } from "shared/hooks.ts";
import { formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ConfirmButton, Copy, Field, Problem, Skeleton, Title } from "shared/ui.tsx";
import { Badge, Outcome, Table, Time, useAction } from "../parts.tsx";
import { withFreshSignIn } from "../passkeys.ts";
import { Runbook } from "../runbooks.tsx";
import { t } from "../texts.ts";

type Scope = Schemas["ServerKeyRequest"]["scopes"][number];

const SCOPES: Scope[] = ["read", "act", "moderate", "events", "export", "erase"];

/** Keys by which servers act for their users: who may do what with them, and their ends. */
export function ServerKeys() {
  const keys = useRead("server-keys", (signal) => plaza.get("/ops/server-keys", { signal }));
  const [made, setMade] = useState<string>();
  const action = useAction();
  const form = useForm(async (data) => {
    const body = {
      name: String(data.get("name")).trim(),
      scopes: data.getAll("scopes") as Scope[],
      requests_per_s: Number(data.get("requests_per_s")),
    };
    setMade((await withFreshSignIn(() => plaza.post("/ops/server-keys", { body }))).key);
    keys.reload();
  });
  const end = (id: string) =>
    action.run(async () => {
      await withFreshSignIn(() => plaza.delete("/ops/server-keys/{key_id}", { path: { key_id: id } }));
      keys.reload();
      return t.serverKeys.hasEnded;
    });
  return (
    <>
      <Title text={t.nav.serverKeys} actions={<Runbook name="key-leaked" />} />
      <Outcome of={action} />
      <Problem error={keys.error} retry={keys.reload} />
      {keys.data === undefined ? (
        keys.error === undefined && <Skeleton rows={2} />
      ) : (
        <Table
          label={t.nav.serverKeys}
          head={[
            t.serverKeys.key,
            t.account.name,
            t.serverKeys.scopes,
            t.serverKeys.perSecond,
            t.serverKeys.made,
            t.account.used,
            t.action,
          ]}
          empty={t.serverKeys.none}
          texts={keys.data.items.map((key) => `${key.key_id} ${key.name} ${key.scopes.join(" ")}`)}
          rows={keys.data.items.map((key) => [
            <>
              <code>{key.key_id}</code> <Copy text={key.key_id} />
            </>,
            key.name,
            key.scopes.join(", "),
            formatNumber(key.requests_per_s),
            <Time at={key.created_at} />,
            <Time at={key.used_at} />,
            key.ended_at !== null ? (
              <Badge tone="plain">{t.serverKeys.ended}</Badge>
            ) : (
              <ConfirmButton
                label={t.account.end}
                confirm={t.serverKeys.endKey}
                disabled={action.isBusy}
                act={() => void end(key.key_id)}
              />
            ),
          ])}
        />
      )}
      {made !== undefined && (
        <div class="note" role="status">
          <p>{t.serverKeys.once}</p>
          <p>
            <code class="secret">{made}</code> <Copy text={made} />
          </p>
        </div>
      )}
      <form class="narrow" noValidate onSubmit={form.submit}>
        <p class="fine">{t.serverKeys.when}</p>
        <Field form={form} name="name" label={t.account.name} autocomplete="off" maxLength={32} />
        <fieldset class="choice">
          <legend>{t.serverKeys.scopes}</legend>
          {SCOPES.map((scope) => (
            <label key={scope}>
              <input type="checkbox" name="scopes" value={scope} defaultChecked={scope === "read"} />
              {`${scope}: ${t.serverKeys.may[scope]}`}
            </label>
          ))}
        </fieldset>
        <Field
          form={form}
          name="requests_per_s"
          label={t.serverKeys.perSecond}
          inputMode="numeric"
          autocomplete="off"
          defaultValue="100"
        />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {t.serverKeys.make}
        </button>
      </form>
    </>
  );
}
