/** A flash sale or an ordinary voucher: its countdown, its units, and what the caller can do now. */
import { ProblemError, type Schemas } from "plaza-client";
import { useEffect, useState } from "preact/hooks";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { NotSignedIn, shownUser, withSession } from "shared/session.ts";
import { formatEnd } from "./banners.tsx";
import { ORDER_STATUS, type Order } from "./orders.tsx";
import { type Position, useOwnSales } from "./own-sales.tsx";
import { type Sale, useSale } from "./sale.ts";
import { PRICE, type Voucher } from "./types.ts";

const REASONS: Record<NonNullable<Schemas["OrderResponse"]["reason"]>, string> = {
  "sold-out": "Another buyer was faster: all units are sold.",
  "already-bought": "You have one already.",
  "timed-out": "The order could not be decided in time, and its unit is free again.",
  withdrawn: "The sale was withdrawn.",
};

/** Returns a duration as 2 d 3 h, 3:04:05 or 4:05. */
export function formatDuration(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const [days, hours, minutes, seconds] = [s / 86_400, (s / 3600) % 24, (s / 60) % 60, s % 60].map(Math.floor) as [
    number,
    number,
    number,
    number,
  ];
  if (days > 0) return `${days} d ${hours} h`;
  const two = (value: number) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

/** What the main button says, and what it does; a button without an action is disabled. */
interface Main {
  label: string;
  act?: () => void;
}

interface SaleCardProps {
  voucher: Voucher;
  /** The caller's order, if it is pending or a unit is the caller's. */
  order: Order | undefined;
  setOrder: (order: Order) => void;
}

export function SaleCard({ voucher, order, setOrder }: SaleCardProps) {
  const sale = useSale(voucher.id, voucher.kind);
  const own = useOwnSales();
  const position = own.positions.get(voucher.id);
  const [isBusy, setBusy] = useState(false);
  const [isFull, setFull] = useState(false);
  const [refusal, setRefusal] = useState("");
  const path = { voucher_id: voucher.id };
  const left = sale.status?.left ?? voucher.left;
  const isPending = order?.status === "pending";
  useEffect(() => (position === undefined ? undefined : own.watch()), [position === undefined]);
  useEffect(() => {
    if (order === undefined || !isPending || isBusy) return;
    const ends = new AbortController();
    plaza.waitForOrder(order.order_id, { signal: ends.signal }).then(finish, () => undefined);
    return () => ends.abort();
  }, [order?.order_id, isPending, isBusy]);

  function finish(decided: Order): void {
    setOrder(decided);
    if (decided.status !== "success")
      setRefusal(decided.reason ? REASONS[decided.reason] : `Your order is ${ORDER_STATUS[decided.status]}.`);
  }
  const run = async (act: () => Promise<void>) => {
    if (isBusy) return;
    setRefusal("");
    setBusy(true);
    try {
      await withSession(act);
    } catch (error) {
      if (error instanceof ProblemError && error.slug === "waitlist-full") setFull(true);
      if (!(error instanceof NotSignedIn))
        setRefusal(error instanceof ProblemError ? error.detail : "Plaza cannot be reached. Try again.");
    }
    setBusy(false);
    sale.reload();
  };
  const buy = () =>
    void run(async () => {
      if (position !== undefined) own.set(voucher.id, null); // an order ends the offer; it has not passed
      try {
        finish(await plaza.buy(voucher.id));
      } catch (error) {
        if (position !== undefined) own.set(voucher.id, position);
        throw error;
      }
    });
  const join = () =>
    void run(async () => own.set(voucher.id, await plaza.put("/vouchers/{voucher_id}/waitlist/me", { path })));
  const leave = () =>
    void run(async () => {
      await plaza.delete("/vouchers/{voucher_id}/waitlist/me", { path });
      own.set(voucher.id, null);
    });

  function choose(): Main | null {
    if (isBusy || isPending) return { label: "One moment…" };
    if (order !== undefined) return { label: "Show my order", act: () => go(`/users/${shownUser()}?tab=orders`) };
    if (sale.status?.phase === "withdrawn") return { label: "Withdrawn" };
    if (sale.status?.phase === "closed") return { label: "The sale is over" };
    if (position?.status === "offered") return { label: "Accept the offer", act: buy };
    if (position !== undefined) return null; // the caller can only leave
    if (sale.status?.phase === "upcoming") return { label: "Buy one" };
    if (sale.status?.phase === "sold-out" || left === 0)
      return isFull ? { label: "Sold out" } : { label: "Join the waitlist", act: join };
    // While the status cannot be read, the API decides.
    return sale.status === undefined && sale.error === undefined
      ? { label: "Buy one" }
      : { label: "Buy one", act: buy };
  }
  const main = choose();
  return (
    <section class="card sale" aria-labelledby={`sale-${voucher.id}`}>
      <header>
        <div>
          <p class="kicker">{voucher.kind === "flash" ? "Flash sale" : "Voucher"}</p>
          <h2 id={`sale-${voucher.id}`} tabIndex={-1}>
            {voucher.title}
          </h2>
        </div>
        <b class="price">{PRICE.format(voucher.price_cents / 100)}</b>
      </header>
      <Countdown sale={sale} />
      <label class="left">
        <meter min={0} max={voucher.stock} value={left} low={voucher.stock / 5} />
        {left} of {voucher.stock} left
      </label>
      <p class={`outcome ${order?.status === "success" ? "success" : refusal === "" ? "" : "failed"}`} role="status">
        {describe(order, position, isBusy || isPending, refusal)}
      </p>
      <p class="buttons">
        {main !== null && (
          <button
            type="button"
            class="primary"
            disabled={main.act === undefined && !isBusy}
            aria-disabled={isBusy}
            onClick={main.act}
          >
            {main.label}
          </button>
        )}
        {position !== undefined && order === undefined && (
          <button type="button" onClick={leave}>
            Leave the waitlist
          </button>
        )}
      </p>
    </section>
  );
}

/** Returns what the caller has of a sale, in words. */
function describe(order: Order | undefined, position: Position | undefined, isBusy: boolean, refusal: string): string {
  if (refusal !== "") return refusal;
  if (order?.status === "success") return `It is yours. Order ${order.order_id}`;
  if (order?.status === "pending") return "One unit is reserved for you…";
  if (order !== undefined) return `Your order is ${ORDER_STATUS[order.status]}.`;
  if (isBusy || position === undefined) return "";
  if (position.status === "offered") return `A unit is set aside for you until ${formatEnd(position)}.`;
  return `You are number ${position.position} in the waitlist.`;
}

function Countdown({ sale: { status, nextMs, error } }: { sale: Sale }) {
  if (status === undefined)
    return <p class="countdown">{error === undefined ? "…" : "Its status cannot be read now."}</p>;
  const { phase } = status;
  const isUpcoming = phase === "upcoming";
  const isRunning = phase === "open" || phase === "sold-out";
  return (
    <p class="countdown" role="timer">
      {isRunning && nextMs === null && "Open"}
      {isUpcoming && nextMs !== null && (nextMs > 0 ? "Opens in " : "Opens now…")}
      {isRunning && nextMs !== null && (nextMs > 0 ? "Ends in " : "Ends now…")}
      {phase === "closed" && "The sale is over"}
      {phase === "withdrawn" && "The sale was withdrawn"}
      {nextMs !== null && nextMs > 0 && <b>{formatDuration(nextMs)}</b>}
    </p>
  );
}
