import { ProblemError, type Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useForm, useNow, usePages, useRead, useSession } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { go } from "shared/router.ts";
import { say } from "shared/toast.tsx";
import { Ago, Empty, Field, Icon, List, Problem, Skeleton, Title } from "shared/ui.tsx";
import { ORDER_STATUS } from "../orders.tsx";
import { UserLink } from "../people.tsx";
import { Images } from "../posts.tsx";
import { LikeButton } from "../reactions.tsx";
import { ReportButton } from "../report.tsx";
import type { Review, Voucher } from "../types.ts";
import { Waitlist } from "../waitlist.tsx";

const PRICE = new Intl.NumberFormat(undefined, { style: "currency", currency: "EUR" });

export function ShopPage({ id }: { id: string }) {
  const path = { shop_id: id };
  const {
    data: shop,
    error,
    reload,
  } = useRead(`shop ${id}`, (signal) => plaza.get("/shops/{shop_id}", { path, signal }));
  const vouchers = usePages("/shops/{shop_id}/vouchers", { path });
  if (shop === undefined) {
    return (
      <>
        <Title text="Shop" />
        {error === undefined ? <Skeleton rows={1} /> : <Problem error={error} retry={reload} />}
      </>
    );
  }
  return (
    <>
      <Title text={shop.name} />
      <ul class="facts">
        {[shop.area, shop.address, shop.open_hours].filter(Boolean).map((detail) => (
          <li key={detail}>{detail}</li>
        ))}
        {shop.avg_price_cents !== null && <li>about {PRICE.format(shop.avg_price_cents / 100)}</li>}
      </ul>
      {vouchers.items?.map((voucher) => (
        <Sale key={voucher.id} voucher={voucher} reload={vouchers.reload} />
      ))}
      <Reviews shopId={id} />
    </>
  );
}

const REASONS: Record<NonNullable<Schemas["OrderResponse"]["reason"]>, string> = {
  "sold-out": "Another buyer was faster: all units are sold.",
  "already-bought": "You have one already.",
  "timed-out": "The order could not be decided in time, and its unit is free again.",
  withdrawn: "The sale was withdrawn.",
};

type Outcome = { text: string; kind: "pending" | "success" | "failed" };

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

/** A flash sale or an ordinary voucher: its countdown, its units, and the caller's order. */
function Sale({ voucher, reload }: { voucher: Voucher; reload: () => void }) {
  const session = useSession();
  const [outcome, setOutcome] = useState<Outcome>();
  const opens = voucher.opens_at === null ? 0 : Date.parse(voucher.opens_at);
  const closes = voucher.closes_at === null ? Infinity : Date.parse(voucher.closes_at);
  const now = useNow(Date.now() < closes);
  const isOpen = now >= opens && now < closes;
  const next = now < opens ? opens : closes;
  const buy = async () => {
    if (session === null) return go("/sign-in");
    setOutcome({ kind: "pending", text: "One unit is reserved for you…" });
    try {
      const order = await plaza.buy(voucher.id);
      if (order.status === "success") setOutcome({ kind: "success", text: `It is yours. Order ${order.order_id}` });
      else
        setOutcome({
          kind: "failed",
          text: order.reason ? REASONS[order.reason] : `Your order is ${ORDER_STATUS[order.status]}.`,
        });
    } catch (error) {
      setOutcome({
        kind: "failed",
        text: error instanceof ProblemError ? error.detail : "Plaza cannot be reached. Try again.",
      });
    }
    reload();
  };
  return (
    <section class="card sale" aria-labelledby={`sale-${voucher.id}`}>
      <header>
        <div>
          <p class="kicker">{voucher.kind === "flash" ? "Flash sale" : "Voucher"}</p>
          <h2 id={`sale-${voucher.id}`}>{voucher.title}</h2>
        </div>
        <b class="price">{PRICE.format(voucher.price_cents / 100)}</b>
      </header>
      <p class="countdown" role="timer">
        {now < opens ? "Opens in " : !isOpen ? "The sale is over" : closes < Infinity ? "Ends in " : "Open"}
        {now < closes && next < Infinity && <b>{formatDuration(next - now)}</b>}
      </p>
      <label class="left">
        <meter min={0} max={voucher.stock} value={voucher.left} low={voucher.stock / 5} />
        {voucher.left} of {voucher.stock} left
      </label>
      <button
        type="button"
        class="primary"
        disabled={!isOpen || outcome?.kind === "pending" || outcome?.kind === "success"}
        onClick={() => void buy()}
      >
        {outcome?.kind === "pending" ? "Ordering…" : "Buy one"}
      </button>
      <p class={`outcome ${outcome?.kind ?? ""}`} role="status">
        {outcome?.text}
      </p>
      {isOpen && voucher.left === 0 && (outcome === undefined || outcome.kind === "failed") && (
        <Waitlist voucherId={voucher.id} buy={() => void buy()} />
      )}
    </section>
  );
}

function Reviews({ shopId }: { shopId: string }) {
  const [isNewest, setNewest] = useState(true);
  const session = useSession();
  const path = { shop_id: shopId };
  const reviews = usePages(isNewest ? "/shops/{shop_id}/reviews" : "/shops/{shop_id}/reviews/recommended", { path });
  const form = useForm(async (data) => {
    const image = String(data.get("images")).trim();
    const images = image === "" ? [] : [image];
    const body = { score: Number(data.get("score")), body: String(data.get("body")), images };
    const written = await plaza.post("/shops/{shop_id}/reviews", { path, body });
    reviews.change((items) => [written, ...items]);
    document.querySelector<HTMLFormElement>("form.review")?.reset();
    say("Your review is published.");
  });
  return (
    <section>
      <h2 class="section">Reviews</h2>
      <div class="tabs" role="group" aria-label="Order">
        <button type="button" aria-pressed={isNewest} onClick={() => setNewest(true)}>
          Newest
        </button>
        <button type="button" aria-pressed={!isNewest} onClick={() => setNewest(false)}>
          Recommended
        </button>
      </div>
      <List
        of={reviews}
        empty={<Empty icon="star" title={isNewest ? "No reviews yet" : "No review is recommended yet"} />}
      >
        {(review) => <OneReview review={review} />}
      </List>
      {session !== null && (
        <form class="review card" noValidate onSubmit={form.submit}>
          <fieldset class="choice stars">
            <legend>Your score</legend>
            {[1, 2, 3, 4, 5].map((score) => (
              <label key={score}>
                <input type="radio" name="score" value={score} defaultChecked={score === 5} />
                {score}
              </label>
            ))}
          </fieldset>
          <Field form={form} name="body" label="Your review" rows={3} />
          <Field form={form} name="images" label="Image" type="url" help="An https address; may be empty." />
          <Problem error={form.problem} />
          <button type="submit" class="primary" disabled={form.isSending}>
            Publish
          </button>
        </form>
      )}
    </section>
  );
}

function OneReview({ review }: { review: Review }) {
  return (
    <article class="remark">
      <UserLink user={review.author} note={<Ago at={review.created_at} />} />
      <p class="score" aria-label={`${review.score} of 5`} role="img">
        {[1, 2, 3, 4, 5].map((score) => (
          <span key={score} class={score <= review.score ? "full" : ""}>
            <Icon name="star" />
          </span>
        ))}
      </p>
      <p class="body">{review.body}</p>
      <Images of={review.images} />
      <div class="actions">
        <LikeButton type="review" target={review} />
        <ReportButton target={{ type: "review", id: review.id }} ownerId={review.author.id} />
      </div>
    </article>
  );
}
