/** What a user must not miss, on all pages: an offer of a waitlist, and the end of the session. */
import { useRead } from "shared/hooks.ts";
import { fill, formatTime } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { hasEnded, stayOut, useReader, withSession } from "shared/session.ts";
import { type Position, useOwnSales } from "./own-sales.tsx";
import { t } from "./texts.ts";
import type { Voucher } from "./types.ts";

/** Returns the time of the device at which an offer ends: 12:31. */
export function formatEnd(position: Position): string {
  return formatTime(position.accept_by ?? "", { timeStyle: "short" });
}

export function Banners() {
  useReader();
  const offers = [...useOwnSales().positions.values()].filter((position) => position.status === "offered");
  const ids = offers.map((offer) => offer.voucher_id).sort();
  const { data: vouchers } = useRead(
    `vouchers ${ids}`,
    async (signal): Promise<{ items: Voucher[] }> =>
      ids.length === 0 ? { items: [] } : plaza.get("/vouchers", { query: { ids }, signal }),
  );
  return (
    <aside class="banners" aria-label={t.notices}>
      {hasEnded() && <Ended />}
      {offers.map((position) => (
        <Offer
          key={position.voucher_id}
          position={position}
          voucher={vouchers?.items.find((voucher) => voucher.id === position.voucher_id)}
        />
      ))}
    </aside>
  );
}

function Ended() {
  return (
    <div class="banner ended">
      <p role="status">{t.ended.text}</p>
      <p class="buttons">
        <button
          type="button"
          class="small primary"
          onClick={() => void withSession(async () => undefined).catch(() => undefined)}
        >
          {t.ended.again}
        </button>
        <button type="button" class="small quiet" onClick={stayOut}>
          {t.ended.stay}
        </button>
      </p>
    </div>
  );
}

function Offer({ position, voucher }: { position: Position; voucher: Voucher | undefined }) {
  const show = (event: Event) => {
    const sale = document.getElementById(`sale-${position.voucher_id}`);
    if (sale === null) return; // on another page
    event.preventDefault();
    sale.scrollIntoView();
    sale.focus();
  };
  return (
    <div class="banner offer">
      <p role="status">
        {fill(t.offer.text, {
          title: <b key="title">{voucher?.title ?? t.offer.aSale}</b>,
          time: formatEnd(position),
        })}
      </p>
      {voucher !== undefined && (
        <a class="button small primary" href={`#/shops/${voucher.shop_id}`} onClick={show}>
          {t.offer.see}
        </a>
      )}
    </div>
  );
}
