import type { Schemas } from "plaza-client";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Ago } from "shared/ui.tsx";
import { AuditedTargets, readAudit, Verdict } from "../audit.tsx";
import { Badge, formatNumber, formatSeconds, LiveTitle, Outcome, Shown, Stat, Table, useAction } from "../parts.tsx";
import { type Line, Plot } from "../plot.tsx";
import { Runbook } from "../runbooks.tsx";

const MAX_AGE_S = 300;
const STORES = { Redis: "redis", MySQL: "mysql", SQS: "queue" } as const;
const PLOTTED_MINUTES = 60;
const REACH_DAYS = 28;
const MAX_SWEEPS = 20;

/** Whether all is well: the audit, the stores, what waits, the last hour, the visitors, the last reconciliation. */
export function Overview() {
  const audit = useRepeated(readAudit);
  return (
    <>
      <LiveTitle text="Overview" live={audit} />
      <Shown live={audit}>{(read, isStale) => <Verdict audit={read} isStale={isStale} />}</Shown>
      <Stores />
      <Lag />
      <LastHour />
      <Reach />
      {audit.data !== undefined && (
        <details>
          <summary>The {audit.data.items.length} most active targets</summary>
          <AuditedTargets audit={audit.data} />
        </details>
      )}
    </>
  );
}

/** The stores, and whether functions have stopped asking them. */
function Stores() {
  const health = useRepeated((signal) => plaza.get("/ops/health", { signal, ...ONCE }));
  const breakers = useRepeated((signal) => plaza.get("/ops/breakers", { signal, ...ONCE }));
  return (
    <>
      <Shown live={health}>
        {(read) => (
          <div class="stats">
            {Object.entries(STORES).map(([name, field]) => (
              <Stat
                key={name}
                label={name}
                value={read[field]}
                note={describeBreaker(breakers.data?.items.find(({ dependency }) => dependency === name))}
                tone={read[field] === "up" ? "good" : "bad"}
                runbook="api-errors"
              />
            ))}
            <LastRun />
          </div>
        )}
      </Shown>
      <Shown live={breakers}>
        {({ complete }) =>
          !complete && <p class="fine">Redis is unavailable: breakers of other processes are not known.</p>
        }
      </Shown>
    </>
  );
}

function describeBreaker(breaker: Schemas["BreakerResponse"] | undefined): string {
  if (breaker === undefined || breaker.state === "closed") return "breakers closed";
  const processes = Object.entries(breaker.open_in).map(([name, count]) => `${name} (${count})`);
  return `breakers open: ${processes.join(", ") || "in this process"}`;
}

/** Sends again at once what waits in outboxes, and returns how much. */
async function sweep(): Promise<string> {
  let sent = 0;
  for (let requests = 0; requests < MAX_SWEEPS; requests += 1) {
    const { reactions, checkins } = await plaza.post("/ops/sweeps", { body: { everything: false } });
    sent += reactions + checkins;
    if (reactions + checkins === 0) break;
  }
  return `${formatNumber(sent)} ${sent === 1 ? "entry was" : "entries were"} sent again.`;
}

/** What waits: in queues, in outboxes, in the binlog, and how the schedules fare. */
function Lag() {
  const lag = useRepeated((signal) => plaza.get("/ops/lag", { signal, ...ONCE }));
  const action = useAction();
  const sweepNow = () =>
    action.run(async () => {
      const result = await sweep();
      lag.reload();
      return result;
    });
  return (
    <Shown live={lag}>
      {({ queues, gauges, schedules }) => (
        <>
          <div class="stats">
            {queues !== null && <QueueStats queues={queues} />}
            <Stat
              label="Outboxes"
              value={formatNumber(gauges.outboxes)}
              note={`oldest entry ${formatSeconds(gauges.outbox_age_s)}`}
              tone={(gauges.outbox_age_s ?? 0) > MAX_AGE_S ? "bad" : "plain"}
              runbook="outbox"
            />
            <Stat label="Spilled messages" value={formatNumber(gauges.spilled_messages)} />
            <Stat label="Binlog" value={formatSeconds(gauges.binlog_lag_s)} note="behind" />
          </div>
          <p class="buttons">
            <button type="button" class="small" onClick={() => void sweepNow()} disabled={action.isBusy}>
              {action.isBusy ? "Sweeping…" : "Sweep now"}
            </button>
          </p>
          <Outcome of={action} />
          {schedules !== null && <Schedules schedules={schedules} />}
        </>
      )}
    </Shown>
  );
}

function QueueStats({ queues }: { queues: Schemas["QueueResponse"][] }) {
  const sum = (field: "backlog" | "dead_letters") => queues.reduce((total, queue) => total + queue[field], 0);
  const oldestS = Math.max(0, ...queues.map((queue) => queue.oldest_age_s ?? 0));
  const dead = sum("dead_letters");
  return (
    <>
      <Stat
        label="Backlog"
        value={formatNumber(sum("backlog"))}
        note={`oldest message ${formatSeconds(oldestS)}`}
        tone={oldestS > MAX_AGE_S ? "bad" : "plain"}
        href="#/queues"
        runbook="queue-behind"
      />
      <Stat
        label="Dead letters"
        value={formatNumber(dead)}
        tone={dead === 0 ? "good" : "bad"}
        href="#/queues"
        runbook="dead-letters"
      />
    </>
  );
}

function Schedules({ schedules }: { schedules: Schemas["ScheduleResponse"][] }) {
  const failed = schedules.filter(({ outcome }) => outcome === "failed");
  return (
    <details open={failed.length > 0}>
      <summary>
        {schedules.length} schedules ran {failed.length > 0 && <Badge tone="bad">{failed.length} failed</Badge>}
      </summary>
      {failed.length > 0 && <Runbook name="schedules" />}
      <Table
        label="Schedules"
        head={["Schedule", "Last run", "Took", "Outcome", "Last success"]}
        empty="No schedule has run yet."
        rows={schedules.map(({ name, ended_at, duration_ms, outcome, error, succeeded_at }) => [
          name,
          <Ago at={ended_at} />,
          formatSeconds(duration_ms / 1000),
          <Badge tone={outcome === "failed" ? "bad" : "good"}>{error ?? outcome}</Badge>,
          succeeded_at === null ? "–" : <Ago at={succeeded_at} />,
        ])}
      />
    </details>
  );
}

function LastRun() {
  const runs = useRepeated(
    (signal) => plaza.get("/ops/reconciliations", { query: { limit: 5 }, signal, ...ONCE }),
    15_000,
  );
  if (runs.data === undefined) return null;
  const run = runs.data.items.find(({ ended_at }) => ended_at !== null);
  return (
    <Stat
      label="Last reconciliation"
      value={run === undefined ? "none yet" : `${formatNumber(run.differences)} found`}
      note={
        run && (
          <>
            {formatNumber(run.repaired)} repaired, <Ago at={run.started_at} />
          </>
        )
      }
      tone={run === undefined ? "plain" : run.open === 0 ? "good" : "bad"}
      href="#/reconciliation"
      runbook="drift"
    />
  );
}

/** The plots, with the names of their gauges; gauges of queues are added up. */
const PLOTS: [title: string, gauges: [name: string, label: string][]][] = [
  ["Reactions saved a minute", [["reactions_saved_per_min", "reactions"]]],
  ["Orders a minute", [["orders_per_min", "orders"]]],
  ["Polls of live numbers a minute", [["polls_per_min", "polls"]]],
  ["Screens that poll", [["screens", "screens"]]],
  [
    "Messages",
    [
      ["backlog", "in queues"],
      ["dead_letters", "dead letters"],
      ["spilled_messages", "spilled"],
    ],
  ],
  [
    "Outboxes",
    [
      ["outboxes", "of targets"],
      ["checkin_outboxes", "of check-ins"],
    ],
  ],
  [
    "Lag in seconds",
    [
      ["outbox_age_s", "outbox"],
      ["checkin_outbox_age_s", "check-ins"],
      ["binlog_lag_s", "binlog"],
    ],
  ],
  [
    "Drift",
    [
      ["drift", "live audit"],
      ["differences_open", "last reconciliation"],
    ],
  ],
];

function LastHour() {
  const query = { minutes: PLOTTED_MINUTES };
  const read = useRepeated((signal) => plaza.get("/ops/series", { query, signal, ...ONCE }), 20_000);
  return (
    <>
      <h2 class="section">The last hour</h2>
      <Shown live={read}>
        {({ minutes, series }) => (
          <div class="plots">
            {PLOTS.map(([title, gauges]) => (
              <Plot
                key={title}
                title={title}
                times={minutes.map((minute) => Date.parse(minute) / 1000)}
                lines={gauges.map(([name, label]): Line => ({ label, values: addUp(series, name, minutes.length) }))}
              />
            ))}
          </div>
        )}
      </Shown>
    </>
  );
}

/** The visitors of each day, and of this week and all days together, each counted once. */
function Reach() {
  const query = { days: REACH_DAYS };
  const reach = useRepeated((signal) => plaza.get("/ops/reach", { query, signal, ...ONCE }), 60_000);
  return (
    <>
      <h2 class="section">Visitors</h2>
      <Shown live={reach}>
        {({ days, weeks, visitors }) => (
          <>
            <div class="stats">
              <Stat label="Today" value={formatNumber(days.at(-1)?.visitors)} />
              <Stat label="This week" value={formatNumber(weeks.at(-1)?.visitors)} />
              <Stat label={`In ${REACH_DAYS} days`} value={formatNumber(visitors)} note="each counted once" />
            </div>
            <div class="plots">
              <Plot
                title="Visitors a day"
                times={days.map(({ day }) => Date.parse(day) / 1000)}
                lines={[{ label: "visitors", values: days.map((day) => day.visitors) }]}
              />
            </div>
          </>
        )}
      </Shown>
    </>
  );
}

/** Adds up the series of a name minute by minute; null where there is no sample. */
function addUp(series: Schemas["GaugeSeriesResponse"][], name: string, length: number): (number | null)[] {
  const values = series.filter((gauge) => gauge.name === name).map((gauge) => gauge.values);
  return Array.from({ length }, (_, minute) => {
    const known = values.map((all) => all[minute]).filter((value) => typeof value === "number");
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
  });
}
