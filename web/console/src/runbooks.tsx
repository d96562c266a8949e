/** Links from what is red to the runbook that says what to do. */
import { t } from "./texts.ts";

/** Where the runbooks are, with `{}` for the name of one; empty where they are not served. */
const PLACE = document.querySelector<HTMLMetaElement>('meta[name="plaza-runbooks"]')?.content ?? "";

/** Runbooks of dead letters of queues that have their own, as alarms.yaml does. */
const OF_QUEUE: Record<string, string> = {
  orders: "orders-late",
  orders_dlq: "orders-undecided",
  comparisons: "reconciliation-stopped",
  warm_ups: "warm-up",
  pushes: "pushes",
  push_requests: "pushes",
  webhooks: "webhook-disabled",
  deliveries: "webhook-disabled",
  repairs: "drift",
};

export function runbookOf(queue: string): string {
  return OF_QUEUE[queue] ?? "dead-letters";
}

export function Runbook({ name }: { name: string }) {
  if (PLACE === "") return <code>docs/runbooks/{name}.md</code>;
  return (
    <a class="runbook" href={PLACE.replace("{}", name)} target="_blank" rel="noreferrer">
      {t.runbook(name)}
    </a>
  );
}
