export type { Listed } from "./bind.ts";
export {
  type Collectable,
  type Followable,
  type Likeable,
  Plaza,
  type PlazaOptions,
  type Reactable,
  type Reply,
} from "./client.ts";
export type { Slug } from "./contract.ts";
export {
  type LiveControl,
  type LiveInput,
  type LiveSource,
  type LiveTotals,
  type Presence,
  pagePresence,
  pollTotals,
  type ReadTotals,
  type TotalsItem,
} from "./live.ts";
export type {
  Args,
  BodyOf,
  Input,
  ItemOf,
  ListPath,
  Method,
  PathOf,
  QueryOf,
  RequestOptions,
  Result,
  Schemas,
} from "./operations.ts";
export { type FieldProblem, NetworkError, PlazaError, ProblemError } from "./problems.ts";
export { Reaction, type ReactionState, type SendReaction, type Snapshot } from "./reaction.ts";
export {
  memoryStore,
  type Session,
  type SessionChange,
  type SessionStore,
  type Store,
  type Visitor,
  webStore,
} from "./session.ts";
export { isNewer, type Known, type LiveRef, type TotalName } from "./totals.ts";
export type { RetryOptions } from "./transport.ts";
export { type Notification, type NotificationPage, type NotificationRef, Unread, type UnreadState } from "./unread.ts";
