/** Orders of vouchers: their status, the code that a shop redeems, and their cancellation. */
import type { Schemas } from "plaza-client";
import { useRef, useState } from "preact/hooks";
import { usePages, useRead } from "shared/hooks.ts";
import { fill, formatPrice, formatTime, wordOf } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { NotSignedIn, withSession } from "shared/session.ts";
import { Ago, ConfirmButton, Empty, List, Problem } from "shared/ui.tsx";
import { t } from "./texts.ts";

export type Order = Schemas["OrderResponse"];
type Details = Schemas["OrderDetails"];

const MAX_ORDERS = 100;
/** An order in one of these states takes the one unit that a buyer can have. */
const HOLDS: ReadonlySet<Order["status"]> = new Set(["pending", "success", "used", "expired"]);

/** The caller's newest orders, by voucher; none for an anonymous caller. */
export function useOwnOrders() {
  const { data, set } = useRead(
    "own orders",
    async (signal): Promise<{ items: Order[] }> =>
      plaza.session === null ? { items: [] } : plaza.get("/users/me/orders", { query: { limit: MAX_ORDERS }, signal }),
  );
  const latest = useRef<Order[]>([]);
  latest.current = data?.items ?? [];
  return {
    find: (voucherId: string) =>
      latest.current.find((order) => order.voucher_id === voucherId && HOLDS.has(order.status)),
    add: (order: Order) =>
      set({ items: [order, ...latest.current.filter(({ order_id }) => order_id !== order.order_id)] }),
  };
}

/** The orders of the caller. */
export function Orders() {
  const orders = usePages("/users/me/orders");
  const change = (order: Order) =>
    orders.change((items) => items.map((item) => (item.order_id === order.order_id ? { ...item, ...order } : item)));
  return (
    <List
      of={orders}
      empty={
        <Empty icon="bookmark" title={t.orders.none}>
          <p>{t.orders.noneText}</p>
        </Empty>
      }
    >
      {(order) => <OneOrder order={order} change={change} />}
    </List>
  );
}

function OneOrder({ order, change }: { order: Details; change: (order: Order) => void }) {
  const { order_id, status, voucher } = order;
  const [code, setCode] = useState("");
  const [error, setError] = useState<unknown>();
  const path = { order_id };
  const cancel = () =>
    plaza.delete("/orders/{order_id}", { path }).then((cancelled) => {
      setCode("");
      change(cancelled);
    });
  const showCode = () => plaza.put("/orders/{order_id}/code", { path }).then((issued) => setCode(issued.code));
  const run = (act: () => Promise<void>) => {
    setError(undefined);
    withSession(act).catch((reason: unknown) => {
      if (!(reason instanceof NotSignedIn)) setError(reason);
    });
  };
  return (
    <article class={`card order ${status}`} aria-label={t.orders.of(voucher?.title ?? t.orders.aVoucher)}>
      <header>
        <h2>{voucher?.title ?? t.orders.order(order_id)}</h2>
        <b>{wordOf(t.orders.status, status)}</b>
      </header>
      {voucher !== null && (
        <p>
          <a href={`#/shops/${voucher.shop.id}`}>{voucher.shop.name}</a>
          <span>{formatPrice({ cents: voucher.price_cents, currency: voucher.currency })}</span>
        </p>
      )}
      <p>
        <small>{fill(t.orders.ordered, { time: <Ago key="time" at={order.created_at} /> })}</small>
        <small>{describeUse(order)}</small>
      </p>
      <p class="redemption" role="status">
        {code !== "" && (
          <>
            <b>{code}</b>
            <small>{t.orders.show}</small>
          </>
        )}
      </p>
      <Problem error={error} />
      {(status === "success" || status === "pending") && (
        <p class="buttons">
          {status === "success" && (
            <button type="button" class="small primary" onClick={() => run(showCode)}>
              {code === "" ? t.orders.showCode : t.orders.newCode}
            </button>
          )}
          <ConfirmButton
            label={t.orders.cancel}
            confirm={t.orders.reallyCancel}
            act={() => run(cancel)}
            class="small quiet"
          />
        </p>
      )}
    </article>
  );
}

/** Returns when an order was used, or until when it can be. */
function describeUse({ status, used_at, voucher }: Details): string {
  if (used_at !== null) return t.orders.used(formatTime(used_at, { dateStyle: "medium" }));
  if (status !== "success" || voucher === null || voucher.expires_at === null) return "";
  return t.orders.valid(formatTime(voucher.expires_at, { dateStyle: "medium" }));
}
