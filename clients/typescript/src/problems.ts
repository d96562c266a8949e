/**
 * The errors of this package.
 *
 *     PlazaError
 *     ├── ProblemError   the API refused the request: an RFC 9457 problem
 *     └── NetworkError   there is no usable response: connection, timeout, not JSON
 *
 * A PlazaError that is neither is a mistake of the caller, or of the `fetch` that was passed in: no
 * request was sent, and none is repeated. A request whose AbortSignal is aborted throws the reason
 * of the signal instead; an AbortError in an engine whose signals have none.
 */
import type { components, Slug } from "./contract.ts";

/** An invalid field of a request: `body.title`, `query.limit`. */
export type FieldProblem = components["schemas"]["FieldProblem"];

export class PlazaError extends Error {
  override readonly name: string = "PlazaError";
  /** Id of the request in the logs of the API; undefined when it is unknown. */
  readonly requestId: string | undefined;

  constructor(message: string, requestId?: string, cause?: unknown) {
    super(message);
    this.requestId = requestId;
    // As the second argument of Error does, which engines of 2021 ignore.
    if (cause !== undefined) Object.defineProperty(this, "cause", { value: cause, configurable: true, writable: true });
  }
}

export class NetworkError extends PlazaError {
  override readonly name = "NetworkError";
}

/** The kinds of refusals of API Gateway itself, whose body is `{"message": ...}`. */
const OF_GATEWAY: Partial<Record<number, Slug>> = {
  403: "forbidden",
  404: "not-found",
  429: "too-many-requests",
  500: "internal",
  503: "unavailable",
};

export class ProblemError extends PlazaError {
  override readonly name = "ProblemError";
  /** URI of the kind of problem, in the documentation; `about:blank` if the response has none. */
  readonly type: string;
  /** The kind of problem: `not-found`, `sold-out`. Programs compare it. A newer API may send others. */
  readonly slug: Slug | "about:blank";
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The invalid fields of a 400; otherwise empty. */
  readonly errors: readonly FieldProblem[];
  /** Seconds to wait before the request is sent again; undefined without a `Retry-After`. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, body: unknown, requestId?: string, retryAfterS?: number) {
    const problem = (typeof body === "object" && body !== null ? body : {}) as Partial<ProblemError>;
    const title = problem.title ?? `HTTP ${status}`;
    const detail = problem.detail ?? problem.message ?? title;
    super(detail, requestId);
    this.type = problem.type ?? "about:blank";
    const ofGateway = problem.message && OF_GATEWAY[status];
    // An older API sends none; `type` ends with it.
    this.slug = problem.slug ?? (ofGateway || (/[^/#]*$/.exec(this.type)?.[0] as Slug));
    this.title = title;
    this.status = status;
    this.detail = detail;
    this.errors = problem.errors ?? [];
    this.retryAfterS = retryAfterS;
  }

  /** Returns what is wrong with a field of the request's body, or undefined. */
  field(name: string): string | undefined {
    return this.errors.find((error) => error.field === `body.${name}`)?.detail;
  }
}
