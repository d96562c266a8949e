import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { useRepeated } from "shared/repeated.ts";
import { Problem } from "shared/ui.tsx";
import { type Audit, AuditedTargets, readAudit, Verdict } from "../audit.tsx";
import {
  type AuditReport,
  type ControlAction,
  type Crowd,
  readControl,
  runAction,
  runAudit,
  type ServerState,
} from "../control.ts";
import { Badge, Dated, formatNumber, LiveTitle, Outcome, Shown, useAction } from "../parts.tsx";
import { Plot } from "../plot.tsx";
import { Runbook } from "../runbooks.tsx";

const EVERY_MS = 1000;
const MAX_SAMPLES = 120;

/** Breaks a local stack under a crowd of likes; the audit comes back to zero. */
export function BreakIt() {
  const control = useRepeated(readControl, EVERY_MS);
  const audit = useRepeated(readAudit, EVERY_MS);
  const samples = useSamples(audit.data);
  const action = useAction();
  const auditing = useAction();
  const isLeft = useRef(false);
  useEffect(
    () => () => {
      isLeft.current = true;
    },
    [],
  );
  const [report, setReport] = useState<AuditReport>();
  const act = (name: ControlAction) =>
    void action.run(async () => {
      setReport(undefined);
      await runAction(name);
      control.reload();
    });
  const audits = () =>
    void auditing.run(async () => {
      for (let wait = false; !isLeft.current; wait = true) {
        const read = await runAudit(wait);
        setReport(read);
        if (read.quiet) return;
      }
    });
  return (
    <>
      <LiveTitle text="Break it" live={audit} />
      <p class="fine">
        Start a crowd of likes, take something away, bring it back. Nothing is lost, and nothing is counted twice.
      </p>
      <Dated live={audit}>{(read, isStale) => <Verdict audit={read} isStale={isStale} />}</Dated>
      <Shown live={control}>
        {({ redis, mysql, copies, killed, crowd }) => (
          <div class="switches">
            <Switch label="Crowd" state={crowd === null ? "not started" : <Progress crowd={crowd} />}>
              <button
                type="button"
                class="small primary"
                disabled={action.isBusy || crowd?.running}
                onClick={() => act("start-crowd")}
              >
                Start a crowd
              </button>
            </Switch>
            <ServerSwitch label="Redis" state={redis} disabled={action.isBusy} act={(verb) => act(`${verb}-redis`)} />
            <ServerSwitch label="MySQL" state={mysql} disabled={action.isBusy} act={(verb) => act(`${verb}-mysql`)} />
            <Switch label="Consumer" state={`${formatNumber(killed)} workers killed`}>
              <button type="button" class="small" disabled={action.isBusy} onClick={() => act("kill-consumers")}>
                Kill its workers
              </button>
            </Switch>
            <Switch label="Deliveries" state={copies === 1 ? "each message once" : "each message twice"}>
              <button
                type="button"
                class="small"
                disabled={action.isBusy}
                onClick={() => act(copies === 1 ? "double-deliveries" : "single-deliveries")}
              >
                {copies === 1 ? "Deliver twice" : "Deliver once"}
              </button>
            </Switch>
            <Switch
              label="Full audit"
              state={report === undefined ? "of all data" : VERDICTS[verdictOf(report)].toLowerCase()}
            >
              <button type="button" class="small" disabled={auditing.isBusy} onClick={audits}>
                Audit everything
              </button>
            </Switch>
          </div>
        )}
      </Shown>
      <Outcome of={action} />
      <Outcome of={auditing} />
      <Problem error={audit.error} retry={audit.reload} />
      {report !== undefined && <Report report={report} />}
      <Plot
        title="Unconfirmed reactions and drift"
        times={samples.map(([at]) => at)}
        lines={[
          { label: "unconfirmed", values: samples.map(([, outbox]) => outbox) },
          { label: "drift", values: samples.map(([, , drift]) => drift) },
        ]}
      />
      <Dated live={audit}>{(read) => <AuditedTargets audit={read} />}</Dated>
    </>
  );
}

type Sample = [atS: number, outbox: number, drift: number];

/** Keeps the last audits of this page for its plot. */
function useSamples(audit: Audit | undefined): Sample[] {
  const [samples, setSamples] = useState<Sample[]>([]);
  useEffect(() => {
    if (audit === undefined) return;
    const sample: Sample = [Date.parse(audit.audited_at) / 1000, audit.totals.outbox, audit.totals.drift];
    setSamples((before) => [...before, sample].slice(-MAX_SAMPLES));
  }, [audit]);
  return samples;
}

function Progress({ crowd: { running, requests, done, provisional, retried, failed, ended } }: { crowd: Crowd }) {
  return (
    <>
      <progress max={requests} value={done} aria-label="Requests" />
      {running ? "playing" : "ended"}: {formatNumber(done)} of {formatNumber(requests)} requests,{" "}
      {formatNumber(provisional)} provisional, {formatNumber(retried)} retried, {formatNumber(failed)} failed
      {ended && `. ${ended}`}
    </>
  );
}

interface SwitchProps {
  label: string;
  state: ComponentChildren;
  children: ComponentChildren;
}

function Switch({ label, state, children }: SwitchProps) {
  return (
    <div class="card switch" role="group" aria-label={label}>
      <p>
        <b>{label}</b>
        <small>{state}</small>
      </p>
      {children}
    </div>
  );
}

interface ServerSwitchProps {
  label: string;
  state: ServerState;
  disabled: boolean;
  act: (verb: "start" | "stop") => void;
}

function ServerSwitch({ label, state, disabled, act }: ServerSwitchProps) {
  const verb = state === "down" ? "start" : "stop";
  return (
    <Switch label={label} state={<Badge tone={state === "down" ? "bad" : "good"}>{state}</Badge>}>
      <button type="button" class="small" disabled={disabled || state === "external"} onClick={() => act(verb)}>
        {verb === "start" ? "Start" : "Stop"} {label}
      </button>
    </Switch>
  );
}

const VERDICTS = { clean: "Clean", transit: "In transit", differs: "Not clean" } as const;
const CLASSES = { clean: "note found good", transit: "note found", differs: "note found problem" } as const;

/** What differs while changes are in transit may be one of them: it is no verdict yet. */
function verdictOf({ clean, quiet }: AuditReport): keyof typeof VERDICTS {
  return clean ? "clean" : quiet ? "differs" : "transit";
}

function Report({ report }: { report: AuditReport }) {
  const verdict = verdictOf(report);
  return (
    <section class={CLASSES[verdict]} aria-label="Full audit">
      <p>
        <b>{VERDICTS[verdict]}</b>: {formatNumber(report.targets)} targets, drift {report.drift}, {report.others} other
        differences, {report.pending} unconfirmed, {report.queued} in queues, {report.dead} dead letters
      </p>
      {verdict === "transit" && <p class="fine">It is repeated until nothing is in transit.</p>}
      {verdict === "differs" && <Runbook name={report.drift + report.others > 0 ? "drift" : "dead-letters"} />}
      {report.differences.map((difference) => (
        <p key={difference} class="fine">
          {difference}
        </p>
      ))}
    </section>
  );
}
