import type { Schemas } from "plaza-client";
import { useForm } from "shared/hooks.ts";
import { fill, formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { say } from "shared/toast.tsx";
import { Ago, Field, Problem } from "shared/ui.tsx";
import { Badge, LiveTitle, Shown, Table } from "../parts.tsx";
import { Runbook } from "../runbooks.tsx";
import { t, word } from "../texts.ts";

type Level = Schemas["LevelRequest"]["level"];
type Current = Schemas["SwitchesResponse"];

const nameOf = (level: Level | null) => (level === null ? t.switches.noLevel : t.switches.levels[level]);

/** The level of degradation, its switches and their changes; another level needs a reason. */
export function Switches() {
  const current = useRepeated((signal) => plaza.get("/ops/switches", { signal, ...ONCE }));
  const changes = useRepeated((signal) => plaza.get("/ops/switches/changes", { signal, ...ONCE }));
  const reload = () => {
    current.reload();
    changes.reload();
  };
  return (
    <>
      <LiveTitle text={t.switches.title} live={current} />
      <Shown live={current}>
        {(read) => (
          <>
            <LevelForm key={read.version} current={read} reload={reload} />
            <Table
              label={t.switches.title}
              head={[t.switches.switch, t.switches.value]}
              empty=""
              rows={Object.entries(read.switches).map(([name, value]) => [word(name), describe(value)])}
            />
          </>
        )}
      </Shown>
      <h2 class="section">{t.switches.changes}</h2>
      <Shown live={changes}>
        {({ items }) => (
          <Table
            label={t.switches.changes}
            head={[t.switches.change, t.switches.level, t.switches.reason, t.switches.by, t.switches.when]}
            empty={t.switches.noChange}
            rows={items.map((change) => [
              formatNumber(change.version),
              nameOf(change.level),
              change.reason,
              change.changed_by,
              <Ago at={change.changed_at} />,
            ])}
          />
        )}
      </Shown>
    </>
  );
}

function describe(value: boolean | number | string[]): string {
  if (typeof value === "boolean") return value ? t.switches.on : t.switches.off;
  return Array.isArray(value) ? value.join(", ") || t.switches.none : formatNumber(value, 2);
}

function LevelForm({ current: { level, version }, reload }: { current: Current; reload: () => void }) {
  const form = useForm(async (data) => {
    const body = { level: String(data.get("level")) as Level, reason: String(data.get("reason")), version };
    await plaza.put("/ops/switches/level", { body });
    say(t.switches.isNow(nameOf(body.level)));
    reload();
  });
  return (
    <form class="card" noValidate onSubmit={form.submit}>
      <fieldset class="choice">
        <legend>
          {fill(t.switches.current, {
            level: (
              <Badge key="level" tone={level === "normal" ? "good" : "bad"}>
                {nameOf(level)}
              </Badge>
            ),
          })}
          {level !== "normal" && (
            <>
              {" "}
              <Runbook name="levels" />
            </>
          )}
        </legend>
        {Object.entries(t.switches.levels).map(([value, text]) => (
          <label key={value}>
            <input type="radio" name="level" value={value} defaultChecked={value === (level ?? "normal")} />
            {text}
          </label>
        ))}
      </fieldset>
      <Field form={form} name="reason" label={t.switches.reason} autocomplete="off" help={t.switches.reasonHelp} />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        {t.switches.set}
      </button>
    </form>
  );
}
