/** Types of the operations: what a method and a path take and return, read from the contract. */
import type { components, paths } from "./contract.ts";
import type { RetryOptions } from "./transport.ts";

/** All named types of the contract: `Schemas["Post"]`. */
export type Schemas = components["schemas"];

export type Method = "get" | "put" | "post" | "patch" | "delete";

interface Operation {
  parameters: object;
  responses: object;
}

/** The paths that have a method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends Operation ? P : never;
}[keyof paths];

type OperationOf<M extends Method, P extends PathOf<M>> = paths[P][M];

type Content<R> = R extends { content: { "application/json": infer Body } } ? Body : undefined;
type Responses<O> = O extends { responses: infer R } ? R[keyof R] : never;

/** The body of a response; undefined for 204. */
export type Result<M extends Method, P extends PathOf<M>> = Content<Responses<OperationOf<M, P>>>;

interface Page<Item> {
  items: Item[];
  next: string | null;
}

/** The paths whose GET returns a page of items. */
export type ListPath = {
  [P in PathOf<"get">]: Result<"get", P> extends Page<unknown> ? P : never;
}[PathOf<"get">];

/** An item of a list. */
export type ItemOf<P extends ListPath> = Result<"get", P> extends Page<infer Item> ? Item : never;

type Parameter<O, Place extends "path" | "query"> = O extends { parameters: infer All }
  ? All extends { [Key in Place]: infer Found }
    ? { [Key in Place]: Found }
    : All extends { [Key in Place]?: infer Found }
      ? { [Key in Place]?: Exclude<Found, undefined> }
      : unknown
  : unknown;
type JsonBody<O> = O extends { requestBody: { content: { "application/json": infer Body } } }
  ? { body: Body }
  : O extends { requestBody?: { content: { "application/json": infer Body } } | undefined }
    ? { body?: Body }
    : unknown;

export interface RequestOptions {
  /** Aborts the request, its retries, and the time between them. */
  signal?: AbortSignal | undefined;
  /** Limit of one attempt. */
  timeoutMs?: number;
  /** Overrides the retries of the client; `{ attempts: 1 }` for none. */
  retry?: Partial<RetryOptions>;
  /** Key of a creation; without one the client makes one for each call. */
  idempotencyKey?: string;
  /** Tag of the version that a change is for, as `tagOf` returns it: a 412 `changed-meanwhile` if there is a newer one. */
  ifMatch?: string | undefined;
}

/** What a call takes: the parameters and the body of the contract, and `RequestOptions`. */
export type Input<M extends Method, P extends PathOf<M>> = Parameter<OperationOf<M, P>, "path"> &
  Parameter<OperationOf<M, P>, "query"> &
  JsonBody<OperationOf<M, P>> &
  RequestOptions;

/** The last argument of a call; optional when nothing of it is required. */
export type Args<M extends Method, P extends PathOf<M>> =
  object extends Input<M, P> ? [input?: Input<M, P>] : [input: Input<M, P>];

/** The query of a GET. */
export type QueryOf<P extends PathOf<"get">> =
  Parameter<OperationOf<"get", P>, "query"> extends { query?: infer Query } ? Query : never;

/** The body that a request takes. */
export type BodyOf<M extends Method, P extends PathOf<M>> =
  JsonBody<OperationOf<M, P>> extends { body?: infer Body } ? Body : never;
