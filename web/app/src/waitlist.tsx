/** The waitlist of a voucher that is sold out: the caller's position, and the offer of a unit. */
import { ProblemError, type Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useSession } from "shared/hooks.ts";
import { ONCE, useLive } from "shared/live.ts";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { Problem } from "shared/ui.tsx";

type Place = Schemas["WaitlistResponse"];

const EVERY_MS = 3000;
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

/** `buy` accepts an offer: it orders the unit that is set aside. */
export function Waitlist({ voucherId, buy }: { voucherId: string; buy: () => void }) {
  const session = useSession();
  const path = { voucher_id: voucherId };
  const [joined, setJoined] = useState<Place>();
  const [error, setError] = useState<unknown>();
  const join = () => {
    if (session === null) return go("/sign-in");
    setError(undefined);
    plaza.put("/vouchers/{voucher_id}/waitlist/me", { path }).then(setJoined, setError);
  };
  const leave = () => {
    setJoined(undefined); // its position is not read any more
    plaza.delete("/vouchers/{voucher_id}/waitlist/me", { path }).catch(setError);
  };
  return (
    <div class="waitlist">
      {joined === undefined ? (
        <button type="button" onClick={join}>
          Join the waitlist
        </button>
      ) : (
        <Place joined={joined} buy={buy} leave={leave} />
      )}
      <Problem error={error} />
    </div>
  );
}

function Place({ joined, buy, leave }: { joined: Place; buy: () => void; leave: () => void }) {
  const path = { voucher_id: joined.voucher_id };
  const waiting = useLive(
    (signal) => plaza.get("/vouchers/{voucher_id}/waitlist/me", { path, signal, ...ONCE }),
    EVERY_MS,
  );
  const { status, position, accept_by } = waiting.data ?? joined;
  const hasEnded = waiting.error instanceof ProblemError && waiting.error.status === 404;
  if (hasEnded) return <p role="status">You do not wait any more: the time of your offer is over.</p>;
  return (
    <>
      <p role="status">
        {status === "offered" && accept_by !== null
          ? `A unit is set aside for you until ${TIME.format(new Date(accept_by))}.`
          : `You are number ${position} in the waitlist.`}
      </p>
      <p class="buttons">
        {status === "offered" && (
          <button type="button" class="primary" onClick={buy}>
            Accept the offer
          </button>
        )}
        <button type="button" class="quiet" onClick={leave}>
          Leave the waitlist
        </button>
      </p>
    </>
  );
}
