import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Copy, Empty, Tabs } from "shared/ui.tsx";
import { Badge, Filter, formatNumber, InApp, LiveTitle, passes, Shown, Time } from "../parts.tsx";

type Sale = Schemas["SaleResponse"];

const STATES = ["running", "coming", "ended"] as const;
const TABS = [
  { value: "running", label: "Running" },
  { value: "coming", label: "Coming" },
  { value: "ended", label: "Ended" },
];
const MAX_SHOWN = 100;

/** Sales by their state, with what became of their units. */
export function Sales({ state }: { state: string | null }) {
  const chosen = STATES.find((name) => name === state) ?? "running";
  return <SalesOf key={chosen} state={chosen} />;
}

function SalesOf({ state }: { state: (typeof STATES)[number] }) {
  const query = { state, limit: MAX_SHOWN };
  const [filter, setFilter] = useState("");
  const sales = useRepeated((signal) => plaza.ops.listSales(query, { signal, ...ONCE }), 2000);
  return (
    <>
      <LiveTitle text="Flash sales" live={sales} />
      <Tabs label="State of the sales" tabs={TABS} value={state} href={(tab) => `#/sales?state=${tab}`} />
      <Shown live={sales}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="tag" title={`No sale is ${state}`} />
          ) : (
            <>
              <p>
                <Filter label="Filter sales" value={filter} set={setFilter} />
              </p>
              {items
                .filter((sale) => passes(filter, `${sale.title} ${sale.voucher_id} ${sale.shop_id}`))
                .map((sale) => (
                  <OneSale key={sale.voucher_id} sale={sale} />
                ))}
            </>
          )
        }
      </Shown>
    </>
  );
}

/** The units of a sale by what became of them; together they are its stock. */
const PARTS = ["sold", "pending", "offered", "left"] as const;

function OneSale({ sale }: { sale: Sale }) {
  return (
    <section class="card run" aria-label={`${sale.title}, voucher ${sale.voucher_id}`}>
      <header>
        <h2>
          <InApp path={`/shops/${sale.shop_id}`}>{sale.title}</InApp>{" "}
          {sale.withdrawn && <Badge tone="bad">withdrawn</Badge>}{" "}
          {!sale.loaded && <Badge tone="plain">not in Redis</Badge>}
        </h2>
        <span class="fine">
          Voucher {sale.voucher_id} <Copy text={sale.voucher_id} />, {sale.kind}
        </span>
      </header>
      <div class="units" aria-hidden="true">
        {PARTS.map((part) => (
          <i key={part} class={part} style={{ flexGrow: sale[part] }} />
        ))}
      </div>
      <dl class="figures">
        {[...PARTS, "stock", "failed", "cancelled", "waiting"].map((name) => (
          <div key={name} class={name}>
            <dt>{name}</dt>
            <dd>{formatNumber(sale[name as keyof Sale] as number)}</dd>
          </div>
        ))}
      </dl>
      <p class="fine">
        Opens <Time at={sale.opens_at} />, closes <Time at={sale.closes_at} />
      </p>
    </section>
  );
}
