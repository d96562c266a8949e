import type { Schemas } from "plaza-client";
import { formatDuration, formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Ago } from "shared/ui.tsx";
import { AuditedTargets, readAudit, Verdict } from "../audit.tsx";
import { Badge, LiveTitle, Outcome, Shown, Stat, Table, useAction } from "../parts.tsx";
import { Plot } from "../plot.tsx";
import { Runbook } from "../runbooks.tsx";
import { t, word } from "../texts.ts";

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
      <LiveTitle text={t.overview.title} live={audit} />
      <Shown live={audit}>{(read, isStale) => <Verdict audit={read} isStale={isStale} />}</Shown>
      <Stores />
      <Lag />
      <LastHour />
      <Reach />
      {audit.data !== undefined && (
        <details>
          <summary>{t.audit.most(audit.data.items.length)}</summary>
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
                value={word(read[field])}
                note={describeBreaker(breakers.data?.items.find(({ dependency }) => dependency === name))}
                tone={read[field] === "up" ? "good" : "bad"}
                runbook="api-errors"
              />
            ))}
            <LastRun />
          </div>
        )}
      </Shown>
      <Shown live={breakers}>{({ complete }) => !complete && <p class="fine">{t.overview.unknown}</p>}</Shown>
    </>
  );
}

function describeBreaker(breaker: Schemas["BreakerResponse"] | undefined): string {
  if (breaker === undefined || breaker.state === "closed") return t.overview.closed;
  const processes = Object.entries(breaker.open_in).map(([name, count]) => `${name} (${count})`);
  return t.overview.open(processes.join(", ") || t.overview.here);
}

/** Sends again at once what waits in outboxes, and returns how much. */
async function sweep(): Promise<string> {
  let sent = 0;
  for (let requests = 0; requests < MAX_SWEEPS; requests += 1) {
    const { reactions, checkins } = await plaza.post("/ops/sweeps", { body: { everything: false } });
    sent += reactions + checkins;
    if (reactions + checkins === 0) break;
  }
  return t.overview.swept(sent);
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
              label={t.overview.outboxes}
              value={formatNumber(gauges.outboxes)}
              note={t.overview.oldestEntry(formatDuration(gauges.outbox_age_s))}
              tone={(gauges.outbox_age_s ?? 0) > MAX_AGE_S ? "bad" : "plain"}
              runbook="outbox"
            />
            <Stat label={t.overview.spilled} value={formatNumber(gauges.spilled_messages)} />
            <Stat label={t.overview.binlog} value={formatDuration(gauges.binlog_lag_s)} note={t.overview.behind} />
          </div>
          <p class="buttons">
            <button type="button" class="small" onClick={() => void sweepNow()} disabled={action.isBusy}>
              {action.isBusy ? t.overview.sweeping : t.overview.sweep}
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
        label={t.overview.backlog}
        value={formatNumber(sum("backlog"))}
        note={t.overview.oldestMessage(formatDuration(oldestS))}
        tone={oldestS > MAX_AGE_S ? "bad" : "plain"}
        href="#/queues"
        runbook="queue-behind"
      />
      <Stat
        label={t.overview.dead}
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
        {t.overview.ran(schedules.length)}{" "}
        {failed.length > 0 && <Badge tone="bad">{t.overview.failed(failed.length)}</Badge>}
      </summary>
      {failed.length > 0 && <Runbook name="schedules" />}
      <Table
        label={t.overview.schedules}
        head={[t.overview.schedule, t.overview.lastRun, t.overview.took, t.overview.outcome, t.overview.lastSuccess]}
        empty={t.overview.noSchedule}
        rows={schedules.map(({ name, ended_at, duration_ms, outcome, error, succeeded_at }) => [
          name,
          <Ago at={ended_at} />,
          formatDuration(duration_ms / 1000),
          <Badge tone={outcome === "failed" ? "bad" : "good"}>{error ?? word(outcome)}</Badge>,
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
  const run = runs.data?.items.find(({ ended_at }) => ended_at !== null);
  const none = runs.data === undefined ? "–" : t.overview.noneYet;
  return (
    <Stat
      label={t.overview.lastReconciliation}
      value={run === undefined ? none : t.overview.found(run.differences)}
      note={
        run && (
          <>
            {t.overview.repaired(run.repaired)}, <Ago at={run.started_at} />
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
const PLOTS: Record<string, string[]> = {
  saved: ["reactions_saved_per_min"],
  orders: ["orders_per_min"],
  polls: ["polls_per_min"],
  screens: ["screens"],
  messages: ["backlog", "dead_letters", "spilled_messages"],
  outboxes: ["outboxes", "checkin_outboxes"],
  lag: ["outbox_age_s", "checkin_outbox_age_s", "binlog_lag_s"],
  drift: ["drift", "differences_open"],
};

function LastHour() {
  const query = { minutes: PLOTTED_MINUTES };
  const read = useRepeated((signal) => plaza.get("/ops/series", { query, signal, ...ONCE }), 20_000);
  return (
    <>
      <h2 class="section">{t.overview.hour}</h2>
      <Shown live={read}>
        {({ minutes, series }) => (
          <div class="plots">
            {Object.entries(PLOTS).map(([plot, gauges]) => (
              <Plot
                key={plot}
                title={t.overview.plots[plot]?.title ?? plot}
                times={minutes.map((minute) => Date.parse(minute) / 1000)}
                lines={gauges.map((name) => ({
                  label: t.overview.plots[plot]?.[name] ?? name,
                  values: addUp(series, name, minutes.length),
                }))}
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
      <h2 class="section">{t.overview.visitors}</h2>
      <Shown live={reach}>
        {({ days, weeks, visitors }) => (
          <>
            <div class="stats">
              <Stat label={t.overview.today} value={formatNumber(days.at(-1)?.visitors)} />
              <Stat label={t.overview.week} value={formatNumber(weeks.at(-1)?.visitors)} />
              <Stat label={t.overview.days(REACH_DAYS)} value={formatNumber(visitors)} note={t.overview.once} />
            </div>
            <div class="plots">
              <Plot
                title={t.overview.perDay}
                times={days.map(({ day }) => Date.parse(day) / 1000)}
                lines={[{ label: t.overview.ofDay, values: days.map((day) => day.visitors) }]}
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
