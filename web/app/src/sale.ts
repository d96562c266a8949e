/** One sale as it is now: by its status and by the clock of the server, never by the clock of the device. */
import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useNow } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";

type Status = Schemas["SaleStatusResponse"];

export interface Sale {
  /** Undefined until it was read. */
  status: Status | undefined;
  /** Milliseconds until the sale opens or closes; null where it does neither any more. */
  nextMs: number | null;
  /** Why the last read failed; `status` is of an earlier one then. */
  error: unknown;
  reload: () => void;
}

const SOON_MS = 15_000;
type Kind = Schemas["VoucherResponse"]["kind"];

const EVERY_MS = { soon: 1_000, flash: 3_000, ordinary: 15_000, upcoming: 15_000, over: 86_400_000 };
/** How much a reply may set the clock back: it was answered by a cache, up to 2 s ago. */
const MAX_STEP_BACK_MS = 50;
/** The time of the server minus the time since the page was opened, which no user can set. */
let offsetMs = Number.NEGATIVE_INFINITY;

/** Learns the time of the server: replies arrive late, so the latest one is the best. */
function learnTime({ now }: Status): void {
  offsetMs = Math.max(Date.parse(now) - performance.now(), offsetMs - MAX_STEP_BACK_MS);
}

/** Follows the status of a sale; faster shortly before it opens or closes, not after its end. */
export function useSale(voucherId: string, kind: Kind): Sale {
  const [everyMs, setEvery] = useState(everyMsOf(kind));
  const { data, error, reload } = useRepeated(async (signal) => {
    const path = { voucher_id: voucherId };
    const status = await plaza.get("/vouchers/{voucher_id}/status", { path, signal, ...ONCE });
    learnTime(status);
    return status;
  }, everyMs);
  useNow(data !== undefined && !isOver(data));
  const nextMs = data === undefined ? null : untilNext(data);
  const pace = paceOf(kind, data, nextMs);
  if (pace !== everyMs) setEvery(pace);
  return { status: data, nextMs, error, reload };
}

function isOver({ phase }: Status): boolean {
  return phase === "closed" || phase === "withdrawn";
}

function untilNext(status: Status): number | null {
  const next = status.phase === "upcoming" ? status.opens_at : isOver(status) ? null : status.closes_at;
  return next === null ? null : Date.parse(next) - (performance.now() + offsetMs);
}

function paceOf(kind: Kind, status: Status | undefined, nextMs: number | null): number {
  if (status === undefined) return everyMsOf(kind);
  if (isOver(status)) return EVERY_MS.over;
  if (nextMs !== null && nextMs < SOON_MS) return EVERY_MS.soon;
  return status.phase === "upcoming" ? EVERY_MS.upcoming : everyMsOf(kind);
}

/** A kind of voucher that this page does not know is read as an ordinary one. */
function everyMsOf(kind: Kind): number {
  return kind === "flash" ? EVERY_MS.flash : EVERY_MS.ordinary;
}
