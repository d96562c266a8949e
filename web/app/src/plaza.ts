/** The client of the app, and what the page says about the deployment. */
import { Plaza, type Schemas, webStore } from "plaza-client";

const meta = document.querySelector<HTMLMetaElement>('meta[name="plaza-api"]');

/** True on the local stack, which shows the texts that it sends. */
export const IS_LOCAL = meta?.dataset["local"] === "true";

/** Without a URL in the page, the API is where the app came from. */
export const plaza = new Plaza(meta?.content || location.origin, {
  store: webStore(() => localStorage),
  visitor: webStore(() => localStorage, "plaza-visitor"),
});

export type Post = Schemas["Post"];
export type Comment = Schemas["Comment"];
export type Review = Schemas["Review"];
export type UserCard = Schemas["UserCard"];
export type Shop = Schemas["ShopResponse"];
export type Voucher = Schemas["VoucherResponse"];
