import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useDraft } from "shared/drafts.ts";
import { useForm, usePages, useRead } from "shared/hooks.ts";
import { fill, formatNumber, formatPrice } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { say } from "shared/toast.tsx";
import { Ago, Empty, Field, Icon, List, Problem, Skeleton, Title, Total } from "shared/ui.tsx";
import { useOwnOrders } from "../orders.tsx";
import { UserLink } from "../people.tsx";
import { Images } from "../posts.tsx";
import { CollectButton, KindButtons, LikeButton } from "../reactions.tsx";
import { ReportButton } from "../report.tsx";
import { SaleCard } from "../sale-card.tsx";
import { t } from "../texts.ts";
import type { Review } from "../types.ts";

const MAX_ORDERS = 100;

export function ShopPage({ id }: { id: string }) {
  const path = { shop_id: id };
  const {
    data: shop,
    error,
    reload,
  } = useRead(`shop ${id}`, (signal) => plaza.get("/shops/{shop_id}", { path, signal }));
  const vouchers = usePages("/shops/{shop_id}/vouchers", { path });
  const orders = useOwnOrders();
  if (shop === undefined) {
    return (
      <>
        <Title text={t.shop.title} />
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
        {shop.avg_price_cents !== null && (
          <li>{t.shop.about(formatPrice({ cents: shop.avg_price_cents, currency: shop.currency }))}</li>
        )}
        {shop.average_score !== null && (
          <li>
            {fill(t.shop.score, {
              score: <b key="score">{formatNumber(shop.average_score, 1)}</b>,
              reviews: <Total key="reviews" of={shop.reviews} word={t.total.review} />,
            })}
          </li>
        )}
      </ul>
      {vouchers.items?.map((voucher) => (
        <SaleCard key={voucher.id} voucher={voucher} order={orders.find(voucher.id)} setOrder={orders.add} />
      ))}
      <Reviews shopId={id} changed={reload} />
    </>
  );
}

/** The orders that the caller used in a shop, newest first; none for an anonymous caller. */
function useUsedOrders(shopId: string) {
  const { data } = useRead(
    `used orders of ${shopId}`,
    async (signal): Promise<Schemas["OrderDetails"][]> =>
      plaza.session === null
        ? []
        : (await plaza.get("/users/me/orders", { query: { limit: MAX_ORDERS }, signal })).items,
  );
  return (data ?? []).filter((order) => order.status === "used" && order.voucher?.shop.id === shopId);
}

function Reviews({ shopId, changed }: { shopId: string; changed: () => void }) {
  const used = useUsedOrders(shopId);
  const [isNewest, setNewest] = useState(true);
  const draft = useDraft(`review of shop ${shopId}`);
  const path = { shop_id: shopId };
  const reviews = usePages(isNewest ? "/shops/{shop_id}/reviews" : "/shops/{shop_id}/reviews/recommended", { path });
  const form = useForm(async (data) => {
    const image = String(data.get("images")).trim();
    const images = image === "" ? [] : [image];
    const body = {
      score: Number(data.get("score")),
      title: String(data.get("title")).trim() || null,
      body: String(data.get("body")),
      images,
      order_id: String(data.get("order_id") ?? "") || null,
    };
    const written = await withSession(() => plaza.post("/shops/{shop_id}/reviews", { path, body }));
    reviews.change((items) => [written, ...items]);
    changed();
    draft.clear();
    draft.form.ref.current?.reset();
    say(t.shop.published);
  });
  return (
    <section>
      <h2 class="section">{t.shop.reviews}</h2>
      <div class="tabs" role="group" aria-label={t.orderLabel}>
        <button type="button" aria-pressed={isNewest} onClick={() => setNewest(true)}>
          {t.shop.newest}
        </button>
        <button type="button" aria-pressed={!isNewest} onClick={() => setNewest(false)}>
          {t.shop.recommended}
        </button>
      </div>
      <List of={reviews} empty={<Empty icon="star" title={isNewest ? t.shop.noReviews : t.shop.noRecommended} />}>
        {(review) => <OneReview review={review} />}
      </List>
      <form class="review card" noValidate onSubmit={form.submit} {...draft.form}>
        <fieldset class="choice stars">
          <legend>{t.shop.yourScore}</legend>
          {[1, 2, 3, 4, 5].map((score) => (
            <label key={score}>
              <input type="radio" name="score" value={score} defaultChecked={score === 5} />
              {formatNumber(score)}
            </label>
          ))}
        </fieldset>
        <Field form={form} name="title" label={t.shop.header} help={t.mayBeEmpty} />
        <Field form={form} name="body" label={t.shop.yourReview} rows={3} />
        {used.length > 0 && (
          <div class="field">
            <label for="reviewed-order">{t.shop.reviewed}</label>
            <select id="reviewed-order" name="order_id">
              {used.map((order) => (
                <option key={order.order_id} value={order.order_id}>
                  {order.voucher?.title}
                </option>
              ))}
              <option value="">{t.shop.theShop}</option>
            </select>
          </div>
        )}
        <Field form={form} name="images" label={t.image} type="url" help={t.imageHelp} />
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {t.publish}
        </button>
      </form>
    </section>
  );
}

export function OneReview({ review }: { review: Review }) {
  return (
    <article class="remark">
      <UserLink
        user={review.author}
        note={
          <>
            <Ago at={review.created_at} />
            {review.verified && t.shop.verified}
          </>
        }
      />
      <p class="score" aria-label={t.shop.stars(review.score)} role="img">
        {[1, 2, 3, 4, 5].map((score) => (
          <span key={score} class={score <= review.score ? "full" : ""}>
            <Icon name="star" />
          </span>
        ))}
      </p>
      {review.title !== null && <h3>{review.title}</h3>}
      <p class="body">{review.body}</p>
      <Images of={review.images} />
      <div class="actions">
        <LikeButton type="review" target={review} />
        <CollectButton type="review" target={review} />
        <KindButtons type="review" target={review} />
        <ReportButton target={{ type: "review", id: review.id }} ownerId={review.author.id} />
      </div>
    </article>
  );
}
