/** What a user must not miss, on all pages: an offer of a waitlist, and the end of the session. */
import { useRead } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { hasEnded, stayOut, useReader, withSession } from "shared/session.ts";
import { type Position, useOwnSales } from "./own-sales.tsx";
import type { Voucher } from "./types.ts";

const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/** Returns the time of the device at which an offer ends: 12:31. */
export function formatEnd(position: Position): string {
  return TIME.format(new Date(position.accept_by ?? ""));
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
    <aside class="banners" aria-label="Notices">
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
      <p role="status">Your session has ended. What you wrote is kept.</p>
      <p class="buttons">
        <button
          type="button"
          class="small primary"
          onClick={() => void withSession(async () => undefined).catch(() => undefined)}
        >
          Sign in again
        </button>
        <button type="button" class="small quiet" onClick={stayOut}>
          Stay signed out
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
        A unit of <b>{voucher?.title ?? "a sale"}</b> is set aside for you until {formatEnd(position)}.
      </p>
      {voucher !== undefined && (
        <a class="button small primary" href={`#/shops/${voucher.shop_id}`} onClick={show}>
          See the offer
        </a>
      )}
    </div>
  );
}
