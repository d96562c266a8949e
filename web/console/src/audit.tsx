/** The live audit: whether Redis, the counters and the rows of the most active targets agree. */
import type { Schemas } from "plaza-client";
import { formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE } from "shared/repeated.ts";
import { Badge, Reactions, Table, type Tone } from "./parts.tsx";
import { Runbook } from "./runbooks.tsx";
import { t, word } from "./texts.ts";

export type Audit = Schemas["AuditResponse"];

const TONES: Record<string, Tone> = {
  agrees: "good",
  "in-transit": "plain",
  "not-loaded": "plain",
  differs: "bad",
};

export const readAudit = (signal: AbortSignal) => plaza.ops.getAudit({ limit: 50 }, { signal, ...ONCE });

/**
 * The drift in large letters, and the sums over the targets that all three stores have. Where none is compared, as
 * after an outage of Redis, there is no verdict.
 */
export function Verdict({ audit: { totals, items }, isStale }: { audit: Audit; isStale: boolean }) {
  const isZero = totals.drift === 0 && totals.differing === 0;
  const compared = items.filter(({ total, rows }) => total !== null && rows !== null);
  const isUnknown = isStale || (isZero && compared.length === 0 && items.length > 0);
  const comparison = t.audit.compared(compared.length, items.length);
  const sum = (field: "total" | "counter" | "rows") => compared.reduce((all, target) => all + (target[field] ?? 0), 0);
  const figures: [string, number][] = [
    [t.redisTotal, sum("total")],
    [t.counter, sum("counter")],
    [t.rows, sum("rows")],
    [t.unconfirmed, totals.outbox],
  ];
  return (
    <section class={`verdict ${isUnknown ? "unknown" : isZero ? "good" : "bad"}`} aria-label={t.audit.title}>
      <p class="drift">
        <b>{isUnknown && !isStale ? "?" : formatNumber(totals.drift)}</b>
        <span>
          {isUnknown && !isStale ? comparison : isZero ? t.audit.none : t.audit.differ(totals.differing)}
          {isStale && t.audit.stale}
        </span>
      </p>
      {compared.length < items.length && (
        <p class="fine">
          {comparison}. {t.audit.notLoaded}
        </p>
      )}
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
      label={t.audit.audited}
      head={[t.audit.target, t.state, t.redisTotal, t.audit.unconfirmed, t.audit.counter, t.audit.rows, t.audit.drift]}
      empty={t.audit.nothing}
      rows={audit.items.map((target) => [
        <Reactions kind={target.kind} type={target.type} id={target.id} />,
        <Badge tone={TONES[target.state] ?? "plain"}>{word(target.state)}</Badge>,
        formatNumber(target.total),
        formatNumber(target.outbox),
        formatNumber(target.counter),
        formatNumber(target.rows),
        target.drift === 0 ? "0" : <Badge tone="bad">{formatNumber(target.drift)}</Badge>,
      ])}
    />
  );
}
