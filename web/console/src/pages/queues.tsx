import type { Schemas } from "plaza-client";
import { usePages } from "shared/hooks.ts";
import { fill, formatDuration, formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Ago, ConfirmButton, Copy, Empty, List, Title } from "shared/ui.tsx";
import { type Action, Badge, LiveTitle, Outcome, Shown, Table, useAction } from "../parts.tsx";
import { Runbook, runbookOf } from "../runbooks.tsx";
import { t } from "../texts.ts";

export const readQueues = (signal: AbortSignal) => plaza.get("/ops/queues", { signal, ...ONCE });

export function Queues() {
  const queues = useRepeated(readQueues);
  return (
    <>
      <LiveTitle text={t.queues.title} live={queues} />
      <Shown live={queues}>
        {({ items }) => (
          <Table
            label={t.queues.title}
            head={[
              t.queues.queue,
              t.queues.backlog,
              t.queues.inFlight,
              t.queues.delayed,
              t.queues.oldest,
              t.queues.dead,
            ]}
            empty={t.queues.none}
            texts={items.map((queue) => queue.name)}
            rows={items.map((queue) => [
              <a href={`#/queues/${queue.name}`}>{queue.name}</a>,
              formatNumber(queue.backlog),
              formatNumber(queue.in_flight),
              formatNumber(queue.delayed),
              formatDuration(queue.oldest_age_s),
              queue.dead_letters === 0 ? (
                "0"
              ) : (
                <>
                  <Badge tone="bad">{formatNumber(queue.dead_letters)}</Badge> <Runbook name={runbookOf(queue.name)} />
                </>
              ),
            ])}
          />
        )}
      </Shown>
    </>
  );
}

/** The dead letters of one queue, and their redrive. */
export function Queue({ name }: { name: string }) {
  const path = { queue: name };
  const letters = usePages("/ops/queues/{queue}/dead-letters", { path });
  const action = useAction();
  const redrive = (ids?: string[]) =>
    action.run(async () => {
      const body = ids === undefined ? {} : { ids };
      const result = await plaza.post("/ops/queues/{queue}/redrives", { path, body });
      letters.reload();
      return describe(result);
    });
  const purge = (id: string) =>
    action.run(async () => {
      const { purged } = await plaza.post("/ops/queues/{queue}/purges", { path, body: { ids: [id] } });
      letters.reload();
      return purged === 1 ? t.queues.purged : t.queues.notPurged;
    });
  return (
    <>
      <Title
        text={t.queues.deadOf(name)}
        actions={
          letters.items !== undefined &&
          letters.items.length > 0 && (
            <ConfirmButton
              label={t.queues.redriveAll}
              confirm={t.queues.reallyRedrive}
              act={() => void redrive()}
              disabled={action.isBusy}
            />
          )
        }
      />
      <p class="fine">
        <a href="#/queues">{t.queues.all}</a> · <Runbook name={runbookOf(name)} />
      </p>
      <Outcome of={action} />
      <List of={letters} empty={<Empty icon="queue" title={t.queues.noDead} />}>
        {(letter) => (
          <DeadLetter
            letter={letter}
            action={action}
            redrive={() => void redrive([letter.id])}
            purge={() => void purge(letter.id)}
          />
        )}
      </List>
    </>
  );
}

function describe({ moved, remaining, missing, delayed }: Schemas["RedriveResponse"]): string {
  const gone = missing.length === 0 ? [] : [t.queues.missing(missing.length)];
  return [t.queues.moved(moved, remaining), ...gone, ...(delayed ? [t.queues.delayedRest] : [])].join(" ");
}

interface DeadLetterProps {
  letter: Schemas["DeadLetterResponse"];
  action: Action;
  redrive: () => void;
  purge: () => void;
}

function DeadLetter({ letter, action, redrive, purge }: DeadLetterProps) {
  return (
    <article class="card letter">
      <header>
        <p>
          <b>{letter.cause ?? t.queues.unknown}</b>
        </p>
        <p class="buttons">
          <button type="button" class="small" onClick={redrive} disabled={action.isBusy}>
            {t.queues.redrive}
            <span class="hidden"> {t.queues.message(letter.id)}</span>
          </button>
          <ConfirmButton
            label={t.queues.purge}
            confirm={t.queues.reallyPurge}
            act={purge}
            class="small quiet"
            disabled={action.isBusy}
          />
        </p>
      </header>
      <p class="fine">
        {fill(t.queues.sent(letter.receives), { time: <Ago key="time" at={letter.sent_at} /> })}
        {letter.request_id !== null && (
          <>
            {t.queues.request(letter.request_id)} <Copy text={letter.request_id} />
          </>
        )}
      </p>
      <pre tabIndex={0}>{typeof letter.body === "string" ? letter.body : JSON.stringify(letter.body, null, 2)}</pre>
    </article>
  );
}
