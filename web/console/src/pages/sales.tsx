import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { fill, formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { Copy, Empty, Tabs } from "shared/ui.tsx";
import { Badge, Filter, InApp, LiveTitle, passes, Shown, Time } from "../parts.tsx";
import { t, word } from "../texts.ts";

type Sale = Schemas["SaleResponse"];

const STATES = ["running", "coming", "ended"] as const;
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
      <LiveTitle text={t.sales.title} live={sales} />
      <Tabs
        label={t.sales.label}
        tabs={STATES.map((value) => ({ value, label: t.sales.states[value] }))}
        value={state}
        href={(tab) => `#/sales?state=${tab}`}
      />
      <Shown live={sales}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon="tag" title={t.sales.none[state]} />
          ) : (
            <>
              <p>
                <Filter label={t.sales.filter} value={filter} set={setFilter} />
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
const FIGURES = [...PARTS, "stock", "failed", "cancelled", "waiting"] as const;

function OneSale({ sale }: { sale: Sale }) {
  return (
    <section class="card run" aria-label={t.sales.name(sale.title, sale.voucher_id)}>
      <header>
        <h2>
          <InApp path={`/shops/${sale.shop_id}`}>{sale.title}</InApp>{" "}
          {sale.withdrawn && <Badge tone="bad">{t.sales.withdrawn}</Badge>}{" "}
          {!sale.loaded && <Badge tone="plain">{t.sales.notLoaded}</Badge>}
        </h2>
        <span class="fine">
          {t.sales.voucher(sale.voucher_id)} <Copy text={sale.voucher_id} /> · {word(sale.kind)}
        </span>
      </header>
      <div class="units" aria-hidden="true">
        {PARTS.map((part) => (
          <i key={part} class={part} style={{ flexGrow: sale[part] }} />
        ))}
      </div>
      <dl class="figures">
        {FIGURES.map((name) => (
          <div key={name} class={name}>
            <dt>{t.sales.units[name]}</dt>
            <dd>{formatNumber(sale[name])}</dd>
          </div>
        ))}
      </dl>
      <p class="fine">
        {fill(t.sales.times, {
          opens: <Time key="opens" at={sale.opens_at} />,
          closes: <Time key="closes" at={sale.closes_at} />,
        })}
      </p>
    </section>
  );
}
