/** A flash sale or an ordinary voucher: its countdown, its units, and what the caller can do now. */
import { ProblemError } from "plaza-client";
import { useEffect, useState } from "preact/hooks";
import { fill, formatPrice, wordOf } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { NotSignedIn, shownUser, withSession } from "shared/session.ts";
import { describeRefusal } from "shared/toast.tsx";
import { formatEnd } from "./banners.tsx";
import type { Order } from "./orders.tsx";
import { type Position, useOwnSales } from "./own-sales.tsx";
import { type Sale, useSale } from "./sale.ts";
import { t } from "./texts.ts";
import type { Voucher } from "./types.ts";

/** Returns a duration as 2 d 3 h, 3:04:05 or 4:05. */
export function formatDuration(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  const [days, hours, minutes, seconds] = [s / 86_400, (s / 3600) % 24, (s / 60) % 60, s % 60].map(Math.floor) as [
    number,
    number,
    number,
    number,
  ];
  if (days > 0) return t.sale.days(days, hours);
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
      setRefusal(decided.reason ? t.sale.reasons[decided.reason] : wordOf(t.sale.orderIs, decided.status));
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
        setRefusal(error instanceof ProblemError ? describeRefusal(error) : t.sale.unreachable);
    }
    setBusy(false);
    sale.reload();
  };
  /** Runs what ends the caller's position, which is not read meanwhile: it would be missing. */
  const giveUp = async (act: () => Promise<void>) => {
    if (position !== undefined) own.set(voucher.id, null);
    try {
      await act();
    } catch (error) {
      if (position !== undefined) own.set(voucher.id, position);
      throw error;
    }
  };
  const buy = () => void run(() => giveUp(async () => finish(await plaza.buy(voucher.id))));
  const join = () =>
    void run(async () => own.set(voucher.id, await plaza.put("/vouchers/{voucher_id}/waitlist/me", { path })));
  const leave = () => void run(() => giveUp(() => plaza.delete("/vouchers/{voucher_id}/waitlist/me", { path })));

  function choose(): Main | null {
    if (isBusy || isPending) return { label: t.sale.moment };
    if (order !== undefined) return { label: t.sale.showOrder, act: () => go(`/users/${shownUser()}?tab=orders`) };
    if (sale.status?.phase === "withdrawn") return { label: t.sale.withdrawn };
    if (sale.status?.phase === "closed") return { label: t.sale.over };
    if (position?.status === "offered") return { label: t.sale.accept, act: buy };
    if (position !== undefined) return null; // the caller can only leave
    if (sale.status?.phase === "upcoming") return { label: t.sale.buy };
    if (sale.status?.phase === "sold-out" || left === 0)
      return isFull ? { label: t.sale.soldOut } : { label: t.sale.join, act: join };
    // While the status cannot be read, the API decides.
    return sale.status === undefined && sale.error === undefined
      ? { label: t.sale.buy }
      : { label: t.sale.buy, act: buy };
  }
  const main = choose();
  return (
    <section class="card sale" aria-labelledby={`sale-${voucher.id}`}>
      <header>
        <div>
          <p class="kicker">{voucher.kind === "flash" ? t.sale.flash : t.sale.voucher}</p>
          <h2 id={`sale-${voucher.id}`} tabIndex={-1}>
            {voucher.title}
          </h2>
        </div>
        <b class="price">{formatPrice({ cents: voucher.price_cents, currency: voucher.currency })}</b>
      </header>
      <Countdown sale={sale} />
      <label class="left">
        <meter min={0} max={voucher.stock} value={left} low={voucher.stock / 5} />
        {t.sale.left(left, voucher.stock)}
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
            {t.sale.leave}
          </button>
        )}
      </p>
    </section>
  );
}

/** Returns what the caller has of a sale, in words. */
function describe(order: Order | undefined, position: Position | undefined, isBusy: boolean, refusal: string): string {
  if (refusal !== "") return refusal;
  if (order?.status === "success") return t.sale.isYours(order.order_id);
  if (order?.status === "pending") return t.sale.reserved;
  if (order !== undefined) return wordOf(t.sale.orderIs, order.status);
  if (isBusy || position === undefined) return "";
  if (position.status === "offered") return t.sale.aside(formatEnd(position));
  return t.sale.position(position.position ?? 0);
}

function Countdown({ sale: { status, nextMs, error } }: { sale: Sale }) {
  if (status === undefined) return <p class="countdown">{error === undefined ? "…" : t.sale.unknown}</p>;
  const { phase } = status;
  const isUpcoming = phase === "upcoming";
  const isRunning = phase === "open" || phase === "sold-out";
  const time = { time: <b key="time">{formatDuration(nextMs ?? 0)}</b> };
  return (
    <p class="countdown" role="timer">
      {isRunning && nextMs === null && t.sale.open}
      {isUpcoming && nextMs !== null && (nextMs > 0 ? fill(t.sale.opensIn, time) : t.sale.opensNow)}
      {isRunning && nextMs !== null && (nextMs > 0 ? fill(t.sale.endsIn, time) : t.sale.endsNow)}
      {phase === "closed" && t.sale.over}
      {phase === "withdrawn" && t.sale.wasWithdrawn}
    </p>
  );
}
