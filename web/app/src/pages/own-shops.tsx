/** The shops that the caller acts for: sales, redemptions, reviews; for owners also members and the shop itself. */

import type { Schemas } from "plaza-client";
import { useRef } from "preact/hooks";
import { type Form, useForm, usePages, useRead } from "shared/hooks.ts";
import { wordOf } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { Ago, ConfirmButton, Empty, Field, List, Problem, Skeleton, Tabs, Title } from "shared/ui.tsx";
import { UserLink } from "../people.tsx";
import { t } from "../texts.ts";
import type { UserCard } from "../types.ts";
import { OneReview } from "./shop.tsx";

type OwnShop = Schemas["OwnShopResponse"];
type Shop = Schemas["ShopResponse"];
type Sale = Schemas["SaleResponse"];
type Voucher = Schemas["VoucherResponse"];

const TABS = ["sales", "redeemed", "reviews"] as const;
const OWNER_TABS = ["members", "shop"] as const;
/** Of the lists that a form chooses from: a user acts for few shops, and a shop redeems its newest vouchers. */
const MAX_CHOICES = 100;

/** The shops of the caller, as a tab of the own profile. */
export function OwnShops() {
  const shops = usePages("/users/me/shops");
  return (
    <List
      of={shops}
      empty={
        <Empty icon="tag" title={t.own.none}>
          <p>{t.own.noneText}</p>
        </Empty>
      }
    >
      {(shop) => (
        <a class="card own-shop" href={`#/own-shops/${shop.id}`}>
          <b>{shop.name}</b> <small>{wordOf(t.own.roles, shop.role)}</small>
        </a>
      )}
    </List>
  );
}

export function OwnShopPage({ id, tab }: { id: string; tab: string | null }) {
  const { data, error, reload } = useRead("own shops", (signal) =>
    plaza.get("/users/me/shops", { query: { limit: MAX_CHOICES }, signal }),
  );
  const shop = data?.items.find((shop) => shop.id === id);
  if (shop === undefined) {
    return (
      <>
        <Title text={t.own.title} />
        {error !== undefined && <Problem error={error} retry={reload} />}
        {error === undefined && data === undefined && <Skeleton />}
        {data !== undefined && <Empty icon="tag" title={t.own.notThis} />}
      </>
    );
  }
  const values = shop.role === "owner" ? [...TABS, ...OWNER_TABS] : TABS;
  const tabs = values.map((value) => ({ label: t.own[value], value }));
  const shown = values.find((value) => value === tab) ?? "sales";
  return (
    <>
      <Title
        text={shop.name}
        actions={
          <a class="button small" href={`#/shops/${id}`}>
            {t.own.public}
          </a>
        }
      />
      <Tabs label={t.own.title} tabs={tabs} value={shown} href={(tab) => `#/own-shops/${id}?tab=${tab}`} />
      {shown === "sales" && <Sales shop={shop} />}
      {shown === "redeemed" && <Redeemed shopId={id} />}
      {shown === "reviews" && <Reviews shopId={id} />}
      {shown === "members" && <Members shopId={id} />}
      {shown === "shop" && <Edit id={id} changed={reload} />}
    </>
  );
}

// ---------------------------------------------------------------- sales and redemptions

function Sales({ shop }: { shop: OwnShop }) {
  const path = { shop_id: shop.id };
  const sales = usePages("/shops/{shop_id}/sales", { path, query: { limit: MAX_CHOICES } });
  const isOwner = shop.role === "owner";
  return (
    <>
      {sales.items !== undefined && sales.items.length > 0 && <Redeem sales={sales.items} redeemed={sales.reload} />}
      <h2 class="section">{t.own.sales}</h2>
      <List of={sales} empty={<Empty icon="tag" title={t.own.noVouchers} />}>
        {(sale) => <OneSale sale={sale} isOwner={isOwner} changed={sales.reload} />}
      </List>
      {isOwner && <Offer shop={shop} offered={sales.reload} />}
    </>
  );
}

function Redeem({ sales, redeemed }: { sales: Sale[]; redeemed: () => void }) {
  const form = useForm(async (data) => {
    const path = { voucher_id: String(data.get("voucher")) };
    const body = { code: String(data.get("code")).trim() };
    await withSession(() => plaza.post("/vouchers/{voucher_id}/redemptions", { path, body }));
    say(t.own.valid);
    redeemed();
  });
  return (
    <form class="card" noValidate onSubmit={form.submit}>
      <h2>{t.own.redeemTitle}</h2>
      <div class="field">
        <label for="redeemed-voucher">{t.own.voucher}</label>
        <select id="redeemed-voucher" name="voucher">
          {sales.map((sale) => (
            <option key={sale.voucher_id} value={sale.voucher_id}>
              {sale.title}
            </option>
          ))}
        </select>
      </div>
      <Field form={form} name="code" label={t.own.code} autocomplete="off" help={t.own.codeHelp} />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        {t.own.redeem}
      </button>
    </form>
  );
}

function OneSale({ sale, isOwner, changed }: { sale: Sale; isOwner: boolean; changed: () => void }) {
  const path = { voucher_id: sale.voucher_id };
  const withdraw = () =>
    void withSession(() => plaza.delete("/vouchers/{voucher_id}", { path })).then(changed, sayRefusal);
  /** The voucher as it was when its form was entered: sales have no tag. */
  const entered = useRef<Voucher | undefined>(undefined);
  const enter = async () => {
    if (entered.current !== undefined) return;
    const voucher = await plaza.get("/vouchers/{voucher_id}", { path });
    entered.current ??= voucher;
    if (voucher.title !== sale.title) changed();
  };
  const form = useForm(async (data) => {
    const body = { title: String(data.get("title")) };
    const ifMatch = entered.current && plaza.tagOf(entered.current);
    entered.current = undefined; // after a refusal the next change is of the newest version
    entered.current = await withSession(() => plaza.patch("/vouchers/{voucher_id}", { path, body, ifMatch }));
    say(t.saved);
    changed();
  });
  return (
    <article class="card order" aria-label={t.own.saleOf(sale.title)}>
      <header>
        <h2>{sale.title}</h2>
        <b>{sale.withdrawn ? t.own.withdrawn : t.sale.left(sale.left, sale.stock)}</b>
      </header>
      <p>
        <span>{t.own.sold(sale.sold)}</span>
        <span>{t.own.cancelled(sale.cancelled)}</span>
        <span>{t.own.waiting(sale.waiting)}</span>
      </p>
      {isOwner && !sale.withdrawn && (
        <form class="rename" noValidate onFocusIn={() => void enter().catch(() => undefined)} onSubmit={form.submit}>
          <Field form={form} name="title" label={t.title} defaultValue={sale.title} />
          <Problem error={form.problem} />
          <button type="submit" class="small" disabled={form.isSending}>
            {t.save}
          </button>
          <ConfirmButton label={t.own.withdraw} confirm={t.own.reallyWithdraw} act={withdraw} class="small quiet" />
        </form>
      )}
    </article>
  );
}

function Offer({ shop: { id: shopId, currency }, offered }: { shop: OwnShop; offered: () => void }) {
  const form = useForm(async (data) => {
    const [opens_at, closes_at, expires_at] = [
      timeOf(data, "opens_at"),
      timeOf(data, "closes_at"),
      timeOf(data, "expires_at"),
    ];
    const body: Schemas["VoucherRequest"] = {
      shop_id: shopId,
      kind: opens_at && closes_at ? "flash" : "ordinary",
      title: String(data.get("title")),
      price_cents: centsOf(data, "price_cents") ?? 0,
      stock: Number(data.get("stock")),
      opens_at,
      closes_at,
      expires_at,
    };
    await withSession(() => plaza.post("/vouchers", { body }));
    say(t.own.offered);
    offered();
  });
  return (
    <form class="card" noValidate onSubmit={form.submit}>
      <h2>{t.own.offerTitle}</h2>
      <Field form={form} name="title" label={t.title} />
      <Field form={form} name="price_cents" label={t.own.price(currency)} inputMode="decimal" />
      <Field form={form} name="stock" label={t.own.units} inputMode="numeric" />
      <TimeField form={form} name="opens_at" label={t.own.begins} help={t.own.beginsHelp} />
      <TimeField form={form} name="closes_at" label={t.own.ends} help={t.own.endsHelp} />
      <TimeField form={form} name="expires_at" label={t.own.until} help={t.own.untilHelp} />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        {t.own.offer}
      </button>
    </form>
  );
}

function TimeField(props: { form: Form; name: string; label: string; help: string }) {
  return <Field {...props} type="datetime-local" />;
}

function timeOf(data: FormData, name: string): string | null {
  const time = String(data.get(name));
  return time === "" ? null : new Date(time).toISOString();
}

/** Returns an amount of a form in cents, null for an empty field. */
function centsOf(data: FormData, name: string): number | null {
  const amount = String(data.get(name)).trim().replace(",", ".");
  return amount === "" ? null : Math.round(Number(amount) * 100);
}

function Redeemed({ shopId }: { shopId: string }) {
  const orders = usePages("/shops/{shop_id}/redemptions", { path: { shop_id: shopId } });
  return (
    <List of={orders} empty={<Empty icon="tag" title={t.own.noRedeemed} />}>
      {(order) => (
        <article class="card order">
          <header>
            <h2>{order.title ?? t.own.voucherId(order.voucher_id)}</h2>
            <Ago at={order.used_at} />
          </header>
          <p>
            <small>{t.orders.order(order.order_id)}</small>
            <a href={`#/users/${order.used_by}`}>{t.own.redeemedBy(order.used_by)}</a>
          </p>
        </article>
      )}
    </List>
  );
}

function Reviews({ shopId }: { shopId: string }) {
  const reviews = usePages("/shops/{shop_id}/reviews", { path: { shop_id: shopId } });
  return (
    <List of={reviews} empty={<Empty icon="star" title={t.shop.noReviews} />}>
      {(review) => <OneReview review={review} />}
    </List>
  );
}

// ---------------------------------------------------------------- members and the shop

function Members({ shopId }: { shopId: string }) {
  const path = { shop_id: shopId };
  const { data, error, reload } = useRead(`members of ${shopId}`, async (signal) => {
    const { items } = await plaza.get("/shops/{shop_id}/members", { path, signal });
    const ids = items.map((member) => member.user_id);
    const users = ids.length === 0 ? [] : (await plaza.get("/users", { query: { ids }, signal })).items;
    const cards = new Map<string, UserCard>(users.map((user) => [user.id, user]));
    return items.map((member) => ({ ...member, card: cards.get(member.user_id) }));
  });
  const remove = (user_id: string) =>
    void withSession(() => plaza.delete("/shops/{shop_id}/members/{user_id}", { path: { ...path, user_id } })).then(
      reload,
      sayRefusal,
    );
  const form = useForm(async (data) => {
    const user_id = String(data.get("user_id")).trim();
    const role = data.get("role") as Schemas["MemberRequest"]["role"];
    await withSession(() =>
      plaza.put("/shops/{shop_id}/members/{user_id}", { path: { ...path, user_id }, body: { role } }),
    );
    say(t.saved);
    reload();
  });
  if (data === undefined) return error === undefined ? <Skeleton /> : <Problem error={error} retry={reload} />;
  return (
    <>
      <ul class="list people">
        {data.map(({ user_id, role, card }) => (
          <li key={user_id}>
            <UserLink
              user={card ?? { id: user_id, nickname: t.own.userId(user_id), avatar: null }}
              note={wordOf(t.own.roles, role)}
            />
            <ConfirmButton
              label={t.own.remove}
              confirm={t.own.reallyRemove}
              act={() => remove(user_id)}
              class="small quiet"
            />
          </li>
        ))}
      </ul>
      <form class="card" noValidate onSubmit={form.submit}>
        <h2>{t.own.appointTitle}</h2>
        <Field form={form} name="user_id" label={t.own.id} inputMode="numeric" help={t.own.idHelp} />
        <fieldset class="choice">
          <legend>{t.own.role}</legend>
          {(["staff", "owner"] as const).map((role) => (
            <label key={role}>
              <input type="radio" name="role" value={role} defaultChecked={role === "staff"} />
              {t.own.roles[role]}
            </label>
          ))}
        </fieldset>
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          {t.own.appoint}
        </button>
      </form>
    </>
  );
}

function Edit({ id, changed }: { id: string; changed: () => void }) {
  const path = { shop_id: id };
  const { data, error, reload, set } = useRead<Shop>(`edited shop ${id}`, (signal) =>
    plaza.get("/shops/{shop_id}", { path, signal }),
  );
  if (data === undefined) return error === undefined ? <Skeleton /> : <Problem error={error} retry={reload} />;
  const save = async (body: Schemas["ShopRequest"]) => {
    set(await withSession(() => plaza.put("/shops/{shop_id}", { path, body, ifMatch: plaza.tagOf(data) })));
    say(t.saved);
    changed();
  };
  return <EditForm shop={data} save={save} />;
}

function EditForm({ shop, save }: { shop: Shop; save: (body: Schemas["ShopRequest"]) => Promise<void> }) {
  const form = useForm((data) => {
    const text = (name: string) => String(data.get(name)).trim() || null;
    const { type_id, place, images } = shop;
    return save({
      type_id,
      place,
      images,
      name: String(data.get("name")),
      area: text("area"),
      address: text("address"),
      open_hours: text("open_hours"),
      avg_price_cents: centsOf(data, "avg_price_cents"),
    });
  });
  const price = shop.avg_price_cents === null ? "" : String(shop.avg_price_cents / 100);
  return (
    <form noValidate onSubmit={form.submit}>
      <Field form={form} name="name" label={t.own.name} defaultValue={shop.name} />
      <Field form={form} name="area" label={t.own.area} defaultValue={shop.area ?? ""} />
      <Field form={form} name="address" label={t.own.address} defaultValue={shop.address ?? ""} />
      <Field form={form} name="open_hours" label={t.own.hours} defaultValue={shop.open_hours ?? ""} />
      <Field
        form={form}
        name="avg_price_cents"
        label={t.own.averagePrice(shop.currency)}
        inputMode="decimal"
        defaultValue={price}
      />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        {t.save}
      </button>
    </form>
  );
}
