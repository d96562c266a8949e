import type { Schemas } from "plaza-client";
import { plaza } from "shared/plaza.ts";
import { Ago } from "shared/ui.tsx";
import { AuditedTargets, readAudit, Verdict } from "../audit.tsx";
import { ONCE, useLive } from "../live.ts";
import { formatNumber, formatSeconds, LiveTitle, Shown, Stat } from "../parts.tsx";
import { readQueues } from "./queues.tsx";

const MAX_SHOWN_AGE_S = 300;
const STORES = { redis: "Redis", mysql: "MySQL", queue: "SQS" } as const;

/** Whether all is well: the audit, the stores, the queues, the last reconciliation. */
export function Overview() {
  const audit = useLive(readAudit);
  return (
    <>
      <LiveTitle text="Overview" live={audit} />
      <Shown live={audit}>{(read) => <Verdict audit={read} />}</Shown>
      <Stores />
      <Backlog />
      <LastRun />
      {audit.data !== undefined && (
        <details class="section">
          <summary>The {audit.data.items.length} most active targets</summary>
          <AuditedTargets audit={audit.data} />
        </details>
      )}
    </>
  );
}

function Stores() {
  const health = useLive((signal) => plaza.get("/ops/health", { signal, ...ONCE }));
  return (
    <Shown live={health}>
      {(read) => (
        <div class="stats">
          {(Object.keys(STORES) as (keyof typeof STORES)[]).map((name) => (
            <Stat key={name} label={STORES[name]} value={read[name]} tone={read[name] === "up" ? "good" : "bad"} />
          ))}
        </div>
      )}
    </Shown>
  );
}

function Backlog() {
  const queues = useLive(readQueues);
  return <Shown live={queues}>{({ items }) => <QueueStats queues={items} />}</Shown>;
}

function QueueStats({ queues }: { queues: Schemas["QueueResponse"][] }) {
  const sum = (field: "backlog" | "in_flight" | "dead_letters") => queues.reduce((total, queue) => total + queue[field], 0);
  const oldestS = Math.max(0, ...queues.map((queue) => queue.oldest_age_s ?? 0));
  const dead = sum("dead_letters");
  return (
    <div class="stats">
      <Stat label="Backlog" value={formatNumber(sum("backlog"))} note={`${formatNumber(sum("in_flight"))} in flight`} href="#/queues" />
      <Stat
        label="Oldest message"
        value={formatSeconds(oldestS)}
        tone={oldestS > MAX_SHOWN_AGE_S ? "bad" : "plain"}
        href="#/queues"
      />
      <Stat label="Dead letters" value={formatNumber(dead)} tone={dead === 0 ? "good" : "bad"} href="#/queues" />
    </div>
  );
}

function LastRun() {
  const runs = useLive((signal) => plaza.get("/ops/reconciliations", { query: { limit: 5 }, signal, ...ONCE }), 15_000);
  return (
    <Shown live={runs}>
      {({ items }) => {
        const run = items.find(({ ended_at }) => ended_at !== null);
        return (
          <Stat
            label="Last reconciliation"
            value={run === undefined ? "none yet" : `${formatNumber(run.differences)} found, ${formatNumber(run.repaired)} repaired`}
            note={run && <Ago at={run.started_at} />}
            tone={run === undefined ? "plain" : run.open === 0 ? "good" : "bad"}
            href="#/reconciliation"
          />
        );
      }}
    </Shown>
  );
}
