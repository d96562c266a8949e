import type { Schemas } from "plaza-client";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Ago, Empty } from "shared/ui.tsx";
import { Badge, formatNumber, formatSeconds, LiveTitle, Outcome, Shown, Table, Time, useAction } from "../parts.tsx";
import { Runbook } from "../runbooks.tsx";

type Run = Schemas["ReconciliationResponse"];

/** The last runs, what they found and repaired, and a button that starts one. */
export function Reconciliation() {
  const runs = useRepeated((signal) => plaza.ops.listReconciliations({}, { signal, ...ONCE }), 3000);
  const action = useAction();
  const start = () =>
    action.run(async () => {
      await plaza.ops.startReconciliation();
      runs.reload();
      return "A reconciliation has started.";
    });
  const isRunning = runs.data?.items.some((run) => run.ended_at === null) ?? false;
  return (
    <>
      <LiveTitle text="Reconciliation" live={runs}>
        <button type="button" class="small primary" onClick={() => void start()} disabled={action.isBusy || isRunning}>
          {isRunning ? "Running…" : "Start one"}
        </button>
      </LiveTitle>
      <Outcome of={action} />
      <Shown live={runs}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="scales" title="No run yet">
              <p>A reconciliation compares Redis, counters and rows, and repairs what differs.</p>
            </Empty>
          ) : (
            items.map((run) => <OneRun key={run.id} run={run} />)
          )
        }
      </Shown>
    </>
  );
}

function OneRun({ run }: { run: Run }) {
  const tookS = run.ended_at === null ? null : (Date.parse(run.ended_at) - Date.parse(run.started_at)) / 1000;

  return (
    <section class="card run" aria-label={`Run ${run.id}`}>
      <header>
        <h2>
          Run {run.id} {tookS === null ? <Badge tone="plain">running</Badge> : <Differences run={run} />}
        </h2>
        <span class="fine">
          <Ago at={run.started_at} />
          {tookS !== null && `, ${formatSeconds(tookS)}`}
        </span>
      </header>
      <p class="fine">
        {formatNumber(run.targets)} targets, {formatNumber(run.users)} users, {formatNumber(run.relations)} rows,{" "}
        {formatNumber(run.cached)} in Redis, {formatNumber(run.skipped)} skipped
        {run.open > 0 && (
          <>
            {" "}
            · <Runbook name="drift" />
          </>
        )}
      </p>
      {run.examples.length > 0 && (
        <Table
          label={`Differences of run ${run.id}`}
          head={["Target", "Differs", "Found", "Values", "Repaired"]}
          empty=""
          rows={run.examples.map((example) => [
            `${example.type} ${example.id}`,
            `${example.metric}: ${example.reason}`,
            <Time at={example.found_at} />,
            example.detail,
            example.repaired_at === null ? <Badge tone="bad">open</Badge> : <Time at={example.repaired_at} />,
          ])}
        />
      )}
    </section>
  );
}

function Differences({ run }: { run: Run }) {
  if (run.differences === 0) return <Badge tone="good">0 differences</Badge>;
  return (
    <Badge tone={run.open === 0 ? "good" : "bad"}>
      {formatNumber(run.differences)} found, {formatNumber(run.repaired)} repaired
    </Badge>
  );
}
