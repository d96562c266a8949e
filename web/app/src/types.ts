/** The types of the contract that several pages show, and the format of prices. */
import type { Schemas } from "plaza-client";

export type Post = Schemas["Post"];
export type PostPreview = Schemas["PostPreview"];
export type Comment = Schemas["Comment"];
export type Review = Schemas["Review"];
export type UserCard = Schemas["UserCard"];
export type Voucher = Schemas["VoucherResponse"];

export const PRICE = new Intl.NumberFormat(undefined, { style: "currency", currency: "EUR" });
