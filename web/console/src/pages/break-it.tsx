import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatDuration } from "shared/language.ts";
import { useRepeated } from "shared/repeated.ts";
import { Problem, Skeleton } from "shared/ui.tsx";
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
import { Badge, Dated, LiveTitle, Outcome, Shown, useAction } from "../parts.tsx";
import { Plot } from "../plot.tsx";
import { Runbook } from "../runbooks.tsx";
import { t, word } from "../texts.ts";

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
      <LiveTitle text={t.breakIt.title} live={audit} />
      <p class="fine">{t.breakIt.what}</p>
      {audit.data === undefined && audit.error === undefined && <Skeleton rows={1} />}
      <Dated live={audit}>{(read, isStale) => <Verdict audit={read} isStale={isStale} />}</Dated>
      <Shown live={control}>
        {({ redis, mysql, copies, killed, crowd }) => (
          <div class="switches">
            <Switch label={t.breakIt.crowd} state={crowd === null ? t.breakIt.notStarted : <Progress crowd={crowd} />}>
              <button
                type="button"
                class="small primary"
                disabled={action.isBusy || crowd?.running}
                onClick={() => act("start-crowd")}
              >
                {t.breakIt.startCrowd}
              </button>
            </Switch>
            <ServerSwitch label="Redis" state={redis} disabled={action.isBusy} act={(verb) => act(`${verb}-redis`)} />
            <ServerSwitch label="MySQL" state={mysql} disabled={action.isBusy} act={(verb) => act(`${verb}-mysql`)} />
            <Switch label={t.breakIt.consumer} state={t.breakIt.killed(killed)}>
              <button type="button" class="small" disabled={action.isBusy} onClick={() => act("kill-consumers")}>
                {t.breakIt.kill}
              </button>
            </Switch>
            <Switch label={t.breakIt.deliveries} state={copies === 1 ? t.breakIt.once : t.breakIt.twice}>
              <button
                type="button"
                class="small"
                disabled={action.isBusy}
                onClick={() => act(copies === 1 ? "double-deliveries" : "single-deliveries")}
              >
                {copies === 1 ? t.breakIt.deliverTwice : t.breakIt.deliverOnce}
              </button>
            </Switch>
            <Switch
              label={t.breakIt.full}
              state={report === undefined ? t.breakIt.all : t.breakIt.verdicts[verdictOf(report)]}
            >
              <button type="button" class="small" disabled={auditing.isBusy} onClick={audits}>
                {t.breakIt.audit}
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
        title={t.breakIt.plot}
        times={samples.map(([at]) => at)}
        lines={[
          { label: t.unconfirmed, values: samples.map(([, outbox]) => outbox) },
          { label: t.drift, values: samples.map(([, , drift]) => drift) },
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

function Progress({ crowd }: { crowd: Crowd }) {
  const { running, requests, done, ended } = crowd;
  return (
    <>
      <progress max={requests} value={done} aria-label={t.breakIt.requests} />
      {running ? t.breakIt.playing : t.breakIt.ended}: {t.breakIt.progress(crowd)}
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
    <Switch label={label} state={<Badge tone={state === "down" ? "bad" : "good"}>{word(state)}</Badge>}>
      <button type="button" class="small" disabled={disabled || state === "external"} onClick={() => act(verb)}>
        {t.breakIt[verb](label)}
      </button>
    </Switch>
  );
}

const CLASSES = { clean: "good", transit: "open", differs: "problem" } as const;

/** What differs while changes are in transit may be one of them: it is no verdict yet. */
function verdictOf({ clean, quiet }: AuditReport): keyof typeof CLASSES {
  return clean ? "clean" : quiet ? "differs" : "transit";
}

function Report({ report }: { report: AuditReport }) {
  const verdict = verdictOf(report);
  return (
    <section class={`note found ${CLASSES[verdict]}`} aria-label={t.breakIt.full}>
      <p>
        <b>{t.breakIt.verdicts[verdict]}</b>: {t.breakIt.report(report)}
      </p>
      {report.queues?.map(({ name, messages, retry_s }) => (
        <p key={name} class="fine">
          {t.breakIt.waiting(name, messages, formatDuration(retry_s))}
        </p>
      ))}
      {verdict === "transit" && <p class="fine">{t.breakIt.repeated}</p>}
      {verdict === "differs" && <Runbook name={report.drift + report.others > 0 ? "drift" : "dead-letters"} />}
      {report.differences.map((difference) => (
        <p key={difference} class="fine">
          {difference}
        </p>
      ))}
    </section>
  );
}
