/** Orders of vouchers: their status, the code that a shop redeems, and their cancellation. */
import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { usePages } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { ConfirmButton, Empty, List, Problem } from "shared/ui.tsx";

type Order = Schemas["OrderResponse"];

export const ORDER_STATUS: Record<Order["status"], string> = {
  pending: "being decided",
  success: "yours",
  failed: "not bought",
  used: "used",
  cancelled: "cancelled",
  expired: "expired",
};

/** The orders of the caller. */
export function Orders() {
  const orders = usePages("/users/me/orders");
  const change = (order: Order) =>
    orders.change((items) => items.map((item) => (item.order_id === order.order_id ? order : item)));
  return (
    <List
      of={orders}
      empty={
        <Empty icon="bookmark" title="No orders yet">
          <p>Flash sales are on the pages of shops.</p>
        </Empty>
      }
    >
      {(order) => <OneOrder order={order} change={change} />}
    </List>
  );
}

function OneOrder({ order, change }: { order: Order; change: (order: Order) => void }) {
  const { order_id, status } = order;
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
    act().catch(setError);
  };
  return (
    <article class={`card order ${status}`} aria-label={`Order ${order_id}`}>
      <p>
        <span>Order {order_id}</span>
        <b>{ORDER_STATUS[status]}</b>
      </p>
      <p class="redemption" role="status">
        {code !== "" && (
          <>
            <b>{code}</b>
            <small>Show it to the shop. A new code replaces it.</small>
          </>
        )}
      </p>
      <Problem error={error} />
      {(status === "success" || status === "pending") && (
        <p class="buttons">
          {status === "success" && (
            <button type="button" class="small primary" onClick={() => run(showCode)}>
              {code === "" ? "Show the code" : "New code"}
            </button>
          )}
          <ConfirmButton
            label="Cancel"
            confirm="Really cancel this order?"
            act={() => run(cancel)}
            class="small quiet"
          />
        </p>
      )}
    </article>
  );
}
