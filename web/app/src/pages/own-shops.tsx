/** The shops that the caller acts for: sales, redemptions, reviews; for owners also members and the shop itself. */
import type { Schemas } from "plaza-client";
import { type Form, useForm, usePages, useRead } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { Ago, ConfirmButton, Empty, Field, List, Problem, Skeleton, Tabs, Title } from "shared/ui.tsx";
import { UserLink } from "../people.tsx";
import type { UserCard } from "../types.ts";
import { OneReview } from "./shop.tsx";

type OwnShop = Schemas["OwnShopResponse"];
type Sale = Schemas["SaleResponse"];

const ROLES: Record<OwnShop["role"], string> = { owner: "Owner", staff: "Staff" };
const TABS = [
  { label: "Sales", value: "sales" },
  { label: "Redeemed", value: "redeemed" },
  { label: "Reviews", value: "reviews" },
];
const OWNER_TABS = [
  { label: "Members", value: "members" },
  { label: "Shop", value: "shop" },
];
/** Of the lists that a form chooses from: a user acts for few shops, and a shop redeems its newest vouchers. */
const MAX_CHOICES = 100;

/** The shops of the caller, as a tab of the own profile. */
export function OwnShops() {
  const shops = usePages("/users/me/shops");
  return (
    <List
      of={shops}
      empty={
        <Empty icon="tag" title="You act for no shop">
          <p>An owner of a shop can appoint you. Your user id is in the address of this page.</p>
        </Empty>
      }
    >
      {(shop) => (
        <a class="card own-shop" href={`#/own-shops/${shop.id}`}>
          <b>{shop.name}</b> <small>{ROLES[shop.role]}</small>
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
        <Title text="My shop" />
        {error !== undefined && <Problem error={error} retry={reload} />}
        {error === undefined && data === undefined && <Skeleton />}
        {data !== undefined && <Empty icon="tag" title="You do not act for this shop" />}
      </>
    );
  }
  const tabs = shop.role === "owner" ? [...TABS, ...OWNER_TABS] : TABS;
  const shown = tabs.find(({ value }) => value === tab)?.value ?? "sales";
  return (
    <>
      <Title
        text={shop.name}
        actions={
          <a class="button small" href={`#/shops/${id}`}>
            Public page
          </a>
        }
      />
      <Tabs label="My shop" tabs={tabs} value={shown} href={(tab) => `#/own-shops/${id}?tab=${tab}`} />
      {shown === "sales" && <Sales shop={shop} />}
      {shown === "redeemed" && <Redeemed shopId={id} />}
      {shown === "reviews" && <Reviews shopId={id} />}
      {shown === "members" && <Members shopId={id} />}
      {shown === "shop" && <Edit shop={shop} changed={reload} />}
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
      <h2 class="section">Sales</h2>
      <List of={sales} empty={<Empty icon="tag" title="No vouchers yet" />}>
        {(sale) => <OneSale sale={sale} isOwner={isOwner} changed={sales.reload} />}
      </List>
      {isOwner && <Offer shopId={shop.id} offered={sales.reload} />}
    </>
  );
}

function Redeem({ sales, redeemed }: { sales: Sale[]; redeemed: () => void }) {
  const form = useForm(async (data) => {
    const path = { voucher_id: String(data.get("voucher")) };
    const body = { code: String(data.get("code")).trim() };
    await withSession(() => plaza.post("/vouchers/{voucher_id}/redemptions", { path, body }));
    say("The code is valid. The order is used now.");
    redeemed();
  });
  return (
    <form class="card" noValidate onSubmit={form.submit}>
      <h2>Redeem a code</h2>
      <div class="field">
        <label for="redeemed-voucher">Voucher</label>
        <select id="redeemed-voucher" name="voucher">
          {sales.map((sale) => (
            <option key={sale.voucher_id} value={sale.voucher_id}>
              {sale.title}
            </option>
          ))}
        </select>
      </div>
      <Field form={form} name="code" label="Code" autocomplete="off" help="16 characters that the buyer shows." />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        Redeem
      </button>
    </form>
  );
}

function OneSale({ sale, isOwner, changed }: { sale: Sale; isOwner: boolean; changed: () => void }) {
  const path = { voucher_id: sale.voucher_id };
  const withdraw = () =>
    void withSession(() => plaza.delete("/vouchers/{voucher_id}", { path })).then(changed, sayRefusal);
  const form = useForm(async (data) => {
    const body = { title: String(data.get("title")) };
    await withSession(() => plaza.patch("/vouchers/{voucher_id}", { path, body }));
    say("Saved.");
    changed();
  });
  return (
    <article class="card order" aria-label={`Sale of ${sale.title}`}>
      <header>
        <h2>{sale.title}</h2>
        <b>{sale.withdrawn ? "withdrawn" : `${sale.left} of ${sale.stock} left`}</b>
      </header>
      <p>
        <span>{sale.sold} sold</span>
        <span>{sale.cancelled} cancelled</span>
        <span>{sale.waiting} waiting</span>
      </p>
      {isOwner && !sale.withdrawn && (
        <form class="rename" noValidate onSubmit={form.submit}>
          <Field form={form} name="title" label="Title" defaultValue={sale.title} />
          <Problem error={form.problem} />
          <button type="submit" class="small" disabled={form.isSending}>
            Save
          </button>
          <ConfirmButton
            label="Withdraw"
            confirm="Really withdraw? No further order succeeds."
            act={withdraw}
            class="small quiet"
          />
        </form>
      )}
    </article>
  );
}

function Offer({ shopId, offered }: { shopId: string; offered: () => void }) {
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
    say("The voucher is offered.");
    offered();
  });
  return (
    <form class="card" noValidate onSubmit={form.submit}>
      <h2>Offer a voucher</h2>
      <Field form={form} name="title" label="Title" />
      <Field form={form} name="price_cents" label="Price in euros" inputMode="decimal" />
      <Field form={form} name="stock" label="Units" inputMode="numeric" />
      <TimeField form={form} name="opens_at" label="Sale begins" help="Empty: now." />
      <TimeField form={form} name="closes_at" label="Sale ends" help="Empty: with the last day of use, or never." />
      <TimeField form={form} name="expires_at" label="Can be used until" help="Empty: without an end." />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        Offer
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
    <List of={orders} empty={<Empty icon="tag" title="No code was redeemed yet" />}>
      {(order) => (
        <article class="card order">
          <header>
            <h2>{order.title ?? `Voucher ${order.voucher_id}`}</h2>
            <Ago at={order.used_at} />
          </header>
          <p>
            <small>Order {order.order_id}</small>
            <a href={`#/users/${order.used_by}`}>Redeemed by user {order.used_by}</a>
          </p>
        </article>
      )}
    </List>
  );
}

function Reviews({ shopId }: { shopId: string }) {
  const reviews = usePages("/shops/{shop_id}/reviews", { path: { shop_id: shopId } });
  return (
    <List of={reviews} empty={<Empty icon="star" title="No reviews yet" />}>
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
    const role = data.get("role") as OwnShop["role"];
    await withSession(() =>
      plaza.put("/shops/{shop_id}/members/{user_id}", { path: { ...path, user_id }, body: { role } }),
    );
    say("Saved.");
    reload();
  });
  if (data === undefined) return error === undefined ? <Skeleton /> : <Problem error={error} retry={reload} />;
  return (
    <>
      <ul class="list people">
        {data.map(({ user_id, role, card }) => (
          <li key={user_id}>
            <UserLink user={card ?? { id: user_id, nickname: `User ${user_id}`, avatar: null }} note={ROLES[role]} />
            <ConfirmButton label="Remove" confirm="Really remove?" act={() => remove(user_id)} class="small quiet" />
          </li>
        ))}
      </ul>
      <form class="card" noValidate onSubmit={form.submit}>
        <h2>Appoint a member</h2>
        <Field
          form={form}
          name="user_id"
          label="User id"
          inputMode="numeric"
          help="The number in the address of the user's profile."
        />
        <fieldset class="choice">
          <legend>Role</legend>
          {(["staff", "owner"] as const).map((role) => (
            <label key={role}>
              <input type="radio" name="role" value={role} defaultChecked={role === "staff"} />
              {ROLES[role]}
            </label>
          ))}
        </fieldset>
        <Problem error={form.problem} />
        <button type="submit" class="primary" disabled={form.isSending}>
          Appoint
        </button>
      </form>
    </>
  );
}

function Edit({ shop, changed }: { shop: OwnShop; changed: () => void }) {
  const form = useForm(async (data) => {
    const text = (name: string) => String(data.get(name)).trim() || null;
    const { id, role, currency, created_at, updated_at, ...kept } = shop;
    const body = {
      ...kept,
      name: String(data.get("name")),
      area: text("area"),
      address: text("address"),
      open_hours: text("open_hours"),
      avg_price_cents: centsOf(data, "avg_price_cents"),
    };
    await withSession(() => plaza.put("/shops/{shop_id}", { path: { shop_id: id }, body }));
    say("Saved.");
    changed();
  });
  const price = shop.avg_price_cents === null ? "" : String(shop.avg_price_cents / 100);
  return (
    <form noValidate onSubmit={form.submit}>
      <Field form={form} name="name" label="Name" defaultValue={shop.name} />
      <Field form={form} name="area" label="Area" defaultValue={shop.area ?? ""} />
      <Field form={form} name="address" label="Address" defaultValue={shop.address ?? ""} />
      <Field form={form} name="open_hours" label="Opening hours" defaultValue={shop.open_hours ?? ""} />
      <Field
        form={form}
        name="avg_price_cents"
        label="Average price of a visit in euros"
        inputMode="decimal"
        defaultValue={price}
      />
      <Problem error={form.problem} />
      <button type="submit" class="primary" disabled={form.isSending}>
        Save
      </button>
    </form>
  );
}
