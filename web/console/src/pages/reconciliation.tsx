import type { Schemas } from "plaza-client";
import { formatDuration } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Ago, Empty } from "shared/ui.tsx";
import { Badge, InApp, LiveTitle, Outcome, pathOf, Shown, Table, Time, useAction } from "../parts.tsx";
import { Runbook } from "../runbooks.tsx";
import { t, word } from "../texts.ts";

type Run = Schemas["ReconciliationResponse"];

/** The last runs, what they found and repaired, and a button that starts one. */
export function Reconciliation() {
  const runs = useRepeated((signal) => plaza.ops.listReconciliations({}, { signal, ...ONCE }), 3000);
  const action = useAction();
  const start = () =>
    action.run(async () => {
      await plaza.ops.startReconciliation();
      runs.reload();
      return t.reconciliation.started;
    });
  const isRunning = runs.data?.items.some((run) => run.ended_at === null) ?? false;
  return (
    <>
      <LiveTitle text={t.reconciliation.title} live={runs}>
        <button type="button" class="small primary" onClick={() => void start()} disabled={action.isBusy || isRunning}>
          {isRunning ? t.reconciliation.running : t.reconciliation.start}
        </button>
      </LiveTitle>
      <Outcome of={action} />
      <Shown live={runs}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="scales" title={t.reconciliation.none}>
              <p>{t.reconciliation.what}</p>
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
    <section class="card run" aria-label={t.reconciliation.run(run.id)}>
      <header>
        <h2>
          {t.reconciliation.run(run.id)}{" "}
          {tookS === null ? <Badge tone="plain">{t.reconciliation.isRunning}</Badge> : <Differences run={run} />}
        </h2>
        <span class="fine">
          <Ago at={run.started_at} />
          {tookS !== null && `, ${formatDuration(tookS)}`}
        </span>
      </header>
      <p class="fine">
        {t.reconciliation.read(run)}
        {run.open > 0 && (
          <>
            {" "}
            · <Runbook name="drift" />
          </>
        )}
      </p>
      {run.examples.length > 0 && (
        <Table
          label={t.reconciliation.differencesOf(run.id)}
          head={[
            t.reconciliation.target,
            t.reconciliation.differs,
            t.reconciliation.found,
            t.reconciliation.values,
            t.reconciliation.repaired,
          ]}
          empty=""
          rows={run.examples.map((example) => [
            <InApp path={pathOf(example.type, example.id)}>{t.target(word(example.type), example.id)}</InApp>,
            `${example.metric}: ${example.reason}`,
            <Time at={example.found_at} />,
            example.detail,
            example.repaired_at === null ? (
              <Badge tone="bad">{t.reconciliation.open}</Badge>
            ) : (
              <Time at={example.repaired_at} />
            ),
          ])}
        />
      )}
    </section>
  );
}

function Differences({ run }: { run: Run }) {
  if (run.differences === 0) return <Badge tone="good">{t.reconciliation.differences(0)}</Badge>;
  return (
    <Badge tone={run.open === 0 ? "good" : "bad"}>{t.reconciliation.outcome(run.differences, run.repaired)}</Badge>
  );
}
