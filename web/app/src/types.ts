/** The types of the contract that several pages show. */
import type { Schemas } from "plaza-client";

export type Post = Schemas["Post"];
export type PostPreview = Schemas["PostPreview"];
export type Comment = Schemas["Comment"];
export type Review = Schemas["Review"];
export type UserCard = Schemas["UserCard"];
export type Voucher = Schemas["VoucherResponse"];
