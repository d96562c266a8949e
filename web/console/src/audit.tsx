/** The live audit: whether Redis, the counters and the rows of the most active targets agree. */
import type { Schemas } from "plaza-client";
import { plaza } from "shared/plaza.ts";
import { ONCE } from "shared/repeated.ts";
import { Badge, formatNumber, Table, type Tone } from "./parts.tsx";
import { Runbook } from "./runbooks.tsx";

export type Audit = Schemas["AuditResponse"];
type AuditedTarget = Schemas["AuditedTargetResponse"];

const STATES: Record<AuditedTarget["state"], [text: string, tone: Tone]> = {
  agrees: ["agrees", "good"],
  "in-transit": ["in transit", "plain"],
  "not-loaded": ["not in Redis", "plain"],
  differs: ["differs", "bad"],
};

export const readAudit = (signal: AbortSignal) => plaza.ops.getAudit({ limit: 50 }, { signal, ...ONCE });

/** The drift in large letters, and the sums over the targets that all three stores have. */
export function Verdict({ audit: { totals, items }, isStale }: { audit: Audit; isStale: boolean }) {
  const isZero = totals.drift === 0 && totals.differing === 0;
  const compared = items.filter(({ total, rows }) => total !== null && rows !== null);
  const sum = (field: "total" | "counter" | "rows") => compared.reduce((all, target) => all + (target[field] ?? 0), 0);
  const figures: [string, number][] = [
    ["Redis total", sum("total")],
    ["counter", sum("counter")],
    ["rows", sum("rows")],
    ["unconfirmed", totals.outbox],
    ["targets", totals.targets],
  ];
  return (
    <section class={`verdict ${isStale ? "unknown" : isZero ? "good" : "bad"}`} aria-label="Live audit">
      <p class="drift">
        <b>{formatNumber(totals.drift)}</b>
        <span>
          {isZero
            ? "No drift"
            : totals.differing === 1
              ? "1 target differs"
              : `${formatNumber(totals.differing)} targets differ`}
          {isStale && ", when it was read last"}
        </span>
      </p>
      {!isZero && <Runbook name="drift" />}
      <dl>
        {figures.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{formatNumber(value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function AuditedTargets({ audit }: { audit: Audit }) {
  return (
    <Table
      label="Audited targets"
      head={["Target", "State", "Redis total", "Unconfirmed", "Counter", "Rows", "Drift"]}
      empty="Nothing was reacted to."
      rows={audit.items.map((target) => {
        const [text, tone] = STATES[target.state];
        return [
          `${target.kind} of ${target.type} ${target.id}`,
          <Badge tone={tone}>{text}</Badge>,
          formatNumber(target.total),
          formatNumber(target.outbox),
          formatNumber(target.counter),
          formatNumber(target.rows),
          target.drift === 0 ? "0" : <Badge tone="bad">{formatNumber(target.drift)}</Badge>,
        ];
      })}
    />
  );
}
