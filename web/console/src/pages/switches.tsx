import type { Schemas } from "plaza-client";
import { useForm } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { say } from "shared/toast.tsx";
import { Ago, Field, Problem } from "shared/ui.tsx";
import { Badge, LiveTitle, Shown, Table } from "../parts.tsx";
import { Runbook } from "../runbooks.tsx";

type Level = Schemas["LevelRequest"]["level"];
type Current = Schemas["SwitchesResponse"];

const LEVELS: Record<Level, string> = {
  normal: "Normal",
  relieved: "Relieved",
  essential: "Essential",
  read_only: "Read only",
  warming: "Warming",
};
const nameOf = (level: Level | null) => (level === null ? "No level" : LEVELS[level]);

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
      <LiveTitle text="Switches" live={current} />
      <Shown live={current}>
        {(read) => (
          <>
            <LevelForm key={read.version} current={read} reload={reload} />
            <Table
              label="Switches"
              head={["Switch", "Value"]}
              empty=""
              rows={Object.entries(read.switches).map(([name, value]) => [name.replaceAll("_", " "), describe(value)])}
            />
          </>
        )}
      </Shown>
      <h2 class="section">Changes</h2>
      <Shown live={changes}>
        {({ items }) => (
          <Table
            label="Changes"
            head={["Change", "Level", "Reason", "By user", "When"]}
            empty="No switch was changed yet."
            rows={items.map((change) => [
              String(change.version),
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
  if (typeof value === "boolean") return value ? "on" : "off";
  return Array.isArray(value) ? value.join(", ") || "none" : String(value);
}

function LevelForm({ current: { level, version }, reload }: { current: Current; reload: () => void }) {
  const form = useForm(async (data) => {
    const body = { level: String(data.get("level")) as Level, reason: String(data.get("reason")), version };
    await plaza.put("/ops/switches/level", { body });
    say(`The level is now: ${LEVELS[body.level]}.`);
    reload();
  });
  return (
    <form class="card" noValidate onSubmit={form.submit}>
      <fieldset class="choice">
        <legend>
          Level: <Badge tone={level === "normal" ? "good" : "bad"}>{nameOf(level)}</Badge>
          {level !== "normal" && (
            <>
              {" "}
              <Runbook name="levels" />
            </>
          )}
        </legend>
        {Object.entries(LEVELS).map(([value, text]) => (
          <label key={value}>
            <input type="radio" name="level" value={value} defaultChecked={value === (level ?? "normal")} />
            {text}
          </label>
        ))}
      </fieldset>
      <Field form={form} name="reason" label="Reason" autocomplete="off" help="For the other operators." />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        Set the level
      </button>
    </form>
  );
}
