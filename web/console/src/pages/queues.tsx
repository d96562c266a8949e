import type { Schemas } from "plaza-client";
import { usePages } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Ago, ConfirmButton, Copy, Empty, List, Title } from "shared/ui.tsx";
import {
  type Action,
  Badge,
  formatNumber,
  formatSeconds,
  LiveTitle,
  Outcome,
  Shown,
  Table,
  useAction,
} from "../parts.tsx";
import { Runbook, runbookOf } from "../runbooks.tsx";

export const readQueues = (signal: AbortSignal) => plaza.get("/ops/queues", { signal, ...ONCE });

export function Queues() {
  const queues = useRepeated(readQueues);
  return (
    <>
      <LiveTitle text="Queues" live={queues} />
      <Shown live={queues}>
        {({ items }) => (
          <Table
            label="Queues"
            head={["Queue", "Backlog", "In flight", "Delayed", "Oldest", "Dead letters"]}
            empty="There are no queues."
            texts={items.map((queue) => queue.name)}
            rows={items.map((queue) => [
              <a href={`#/queues/${queue.name}`}>{queue.name}</a>,
              formatNumber(queue.backlog),
              formatNumber(queue.in_flight),
              formatNumber(queue.delayed),
              formatSeconds(queue.oldest_age_s),
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
      return purged === 1 ? "The message is deleted." : "The message was not found: it may have been received now.";
    });
  return (
    <>
      <Title
        text={`Dead letters of ${name}`}
        actions={
          letters.items !== undefined &&
          letters.items.length > 0 && (
            <ConfirmButton
              label="Redrive all"
              confirm="Really redrive all?"
              act={() => void redrive()}
              disabled={action.isBusy}
            />
          )
        }
      />
      <p class="fine">
        <a href="#/queues">All queues</a> · <Runbook name={runbookOf(name)} />
      </p>
      <Outcome of={action} />
      <List of={letters} empty={<Empty icon="queue" title="No dead letters" />}>
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
  const moves = `${formatNumber(moved)} moved back to the queue, ${formatNumber(remaining)} left.`;
  const gone = missing.length === 0 ? "" : ` ${missing.length} not found.`;
  return `${moves}${gone}${delayed ? " The backlog is too long: redrive the rest later." : ""}`;
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
          <b>{letter.cause ?? "Cause unknown"}</b>
        </p>
        <p class="buttons">
          <button type="button" class="small" onClick={redrive} disabled={action.isBusy}>
            Redrive<span class="hidden"> message {letter.id}</span>
          </button>
          <ConfirmButton
            label="Purge"
            confirm="Really delete it for ever?"
            act={purge}
            class="small quiet"
            disabled={action.isBusy}
          />
        </p>
      </header>
      <p class="fine">
        Sent <Ago at={letter.sent_at} />, received {letter.receives} times
        {letter.request_id !== null && (
          <>
            , request {letter.request_id} <Copy text={letter.request_id} />
          </>
        )}
      </p>
      <pre tabIndex={0}>{typeof letter.body === "string" ? letter.body : JSON.stringify(letter.body, null, 2)}</pre>
    </article>
  );
}
