import { checkBaseUrl, checkLimits, expand, serialize } from "./checks.ts";
import { KEYED_PATHS } from "./contract.ts";
import {
  type LiveControl,
  type LiveSource,
  type LiveTotals,
  type Presence,
  pagePresence,
  pollTotals,
  type TotalsItem,
} from "./live.ts";
import type { Args, ItemOf, ListPath, Method, PathOf, RequestOptions, Result, Schemas } from "./operations.ts";
import { PlazaError, ProblemError } from "./problems.ts";
import { Reaction, type Snapshot } from "./reaction.ts";
import { Resources } from "./resources.ts";
import {
  memoryStore,
  type Session,
  type SessionChange,
  type SessionStore,
  type Store,
  type Visitor,
} from "./session.ts";
import { BUILT_IN, KINDS, keyOf, type LiveRef, NAMES, nameOf, type TotalName, Totals, totalIn } from "./totals.ts";
import { RETRY, type RetryOptions, sendWithRetries, sleep, TIMEOUT_MS } from "./transport.ts";
import { Unread } from "./unread.ts";

export interface PlazaOptions {
  /** Where the session is stored; by default in memory. */
  store?: SessionStore;
  /** Where the anonymous id is stored that views of posts send without a session; by default there is none. */
  visitor?: Store<Visitor>;
  /** Limit of one attempt of a request; 15 s by default. */
  timeoutMs?: number;
  retry?: Partial<RetryOptions>;
  fetch?: typeof fetch;
  /** Where live numbers come from; by default the client polls `GET /totals`. */
  live?: (plaza: Plaza) => LiveSource;
  /** Whether the numbers are visible; by default what the page of a browser says. */
  presence?: Presence;
}

/** A response: its body and what its headers say. */
export interface Reply<Body> {
  status: number;
  body: Body;
  requestId: string | undefined;
  retryAfterS: number | undefined;
  /** `max-age` of the response, in seconds. */
  maxAgeS: number | undefined;
  /** `ETag` of the response. */
  etag: string | undefined;
}

/** The fields of a post, comment or review that a like starts from. */
export interface Likeable {
  id: string;
  likes?: number;
  likes_at?: string | null;
  mine?: { liked: boolean } | null;
  exact?: boolean;
}

export interface Collectable {
  id: string;
  collects?: number;
  collects_at?: string | null;
  mine?: { collected: boolean } | null;
  exact?: boolean;
}

export interface Followable {
  id: string;
  followers?: number;
  followers_at?: string | null;
  mine?: { following: boolean } | null;
  exact?: boolean;
}

/** A target with the reactions that a read returned. */
export interface Reactable extends LiveRef {
  reactions?: Record<string, { total: number; at: string | null; mine?: boolean | null }>;
  exact?: boolean;
}

/** POSTs without a key that can be repeated: a query, and an order that a buyer has once. */
const REPEATABLE_POSTS: ReadonlySet<string> = new Set(["/reactions/query", "/vouchers/{voucher_id}/orders"]);
const VIEW = "/posts/{post_id}";
const REACTION = "/targets/{target_type}/{target_id}/reactions/{kind}/me";
/** Public: without a session and without a preflight, all readers of an edge share its answer. */
const TOTALS = "/totals";
const OWN_STATES_MS = 60_000;
const POLL_S = 5;
const VISITOR_TIMEOUT_MS = 2_000;
const MAX_IDLE_REACTIONS = 500;
const ORDER_POLL_S = 1;

interface AnyInput extends RequestOptions {
  path?: Record<string, string>;
  query?: Record<string, unknown>;
  body?: unknown;
}
type TextType = "post" | "comment" | "review";
/** Types whose built-in kinds have routes of their own; types of the app have the routes of any kind alone. */
const OWN_TYPES: ReadonlySet<string> = new Set(["post", "comment", "review", "user"]);
type SessionListener = (session: Session | null, change: SessionChange) => void;

/** A client of one deployment of Plaza, with at most one session. Its constructor throws a PlazaError for a wrong option. */
export class Plaza extends Resources {
  readonly #baseUrl: string;
  readonly #options: PlazaOptions;
  readonly #store: SessionStore;
  readonly #reactions = new Map<string, Reaction>();
  readonly #listeners = new Set<SessionListener>();
  /** Object that a read returned -> the clock when the read began. */
  readonly #readAt = new WeakMap<object, number>();
  /** Object that a read or a change returned -> its `ETag`. */
  readonly #tags = new WeakMap<object, string>();
  readonly #totals = new Totals();
  /** Key of a watched target -> the target, and how often it is watched. */
  readonly #watched = new Map<string, { ref: LiveRef; count: number }>();
  readonly #staleListeners = new Set<() => void>();
  #source: { control: LiveControl; leave: () => void } | undefined;
  #isStale = false;
  #ownStatesMs = 0;
  #tabs: BroadcastChannel | undefined;
  #clock = 0;
  #session: Session | null = null;
  /** Whose the reactions are: of the last session, also when it has ended. */
  #userId: string | undefined;
  #loading: Promise<void> | undefined;
  #visitorId: Promise<string | undefined> | undefined;
  #unread: Unread | undefined;

  constructor(baseUrl: string, options: PlazaOptions = {}) {
    super();
    this.#baseUrl = checkBaseUrl(baseUrl);
    checkLimits(options);
    this.#options = options;
    this.#store = options.store ?? memoryStore();
    const stored = this.#store.load();
    if (stored instanceof Promise) {
      this.#loading = stored
        .catch(() => null)
        .then((session) => {
          this.#loading = undefined;
          this.#set(session);
        });
    } else {
      this.#session = stored;
      this.#userId = stored?.user.id;
    }
    this.#store.watch?.((session, change) => {
      if (session?.token !== this.#session?.token) this.#set(session, change);
    });
  }

  get<P extends PathOf<"get">>(path: P, ...[input]: Args<"get", P>): Promise<Result<"get", P>> {
    return this.#body("get", path, input);
  }

  put<P extends PathOf<"put">>(path: P, ...[input]: Args<"put", P>): Promise<Result<"put", P>> {
    return this.#body("put", path, input);
  }

  post<P extends PathOf<"post">>(path: P, ...[input]: Args<"post", P>): Promise<Result<"post", P>> {
    return this.#body("post", path, input);
  }

  patch<P extends PathOf<"patch">>(path: P, ...[input]: Args<"patch", P>): Promise<Result<"patch", P>> {
    return this.#body("patch", path, input);
  }

  delete<P extends PathOf<"delete">>(path: P, ...[input]: Args<"delete", P>): Promise<Result<"delete", P>> {
    return this.#body("delete", path, input);
  }

  /** Sends a request and returns its response with status and request id. */
  send<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[input]: Args<M, P>
  ): Promise<Reply<Result<M, P>>> {
    return this.#send(method, path, input as AnyInput | undefined) as Promise<Reply<Result<M, P>>>;
  }

  /**
   * Returns the tag of a post, profile, shop or voucher that a read with a session or a change returned, for the
   * option `ifMatch` of the next change; undefined for others, such as items of lists.
   */
  tagOf(read: object): string | undefined {
    return this.#tags.get(read);
  }

  /** Reads a list page by page. A page may be short or empty before the end. */
  async *pages<P extends ListPath>(path: P, ...[input]: Args<"get", P>): AsyncGenerator<Result<"get", P>, void> {
    let query = (input as AnyInput | undefined)?.query;
    for (;;) {
      const { body } = await this.#send("get", path, { ...(input as AnyInput | undefined), ...(query && { query }) });
      yield body as Result<"get", P>;
      const { next } = body as { next: string | null };
      if (next === null) return;
      query = { ...query, cursor: next };
    }
  }

  /** Reads a list item by item; asks for the next page when it is needed. */
  async *items<P extends ListPath>(path: P, ...args: Args<"get", P>): AsyncGenerator<ItemOf<P>, void> {
    for await (const page of this.pages(path, ...args)) yield* page.items as ItemOf<P>[];
  }

  /** The session; null when signed out, and until an asynchronous store has loaded it. */
  get session(): Session | null {
    return this.#session;
  }

  /**
   * Calls `listener` after each sign-in and sign-out, also in another tab, and after the API has ended
   * the session. Returns a function that ends this.
   */
  onSession(listener: SessionListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Sends a sign-in code by text message. Returns the challenge that `signIn` needs. */
  sendCode(phone: string, options: RequestOptions = {}): Promise<Schemas["CodeResponse"]> {
    return this.post("/auth/codes", { ...options, body: { phone } });
  }

  /** Exchanges a challenge and its code for a session, and stores the session. */
  async signIn(challenge: string, code: string, options: RequestOptions = {}): Promise<Session> {
    const reply = await this.post("/auth/sessions", { ...options, body: { challenge, code } });
    const { token, expires_in, user, reopened } = reply;
    const session: Session = { token, expiresAt: Date.now() + expires_in * 1000, user };
    if (reopened) session.reopened = true;
    await this.#save(session);
    return session;
  }

  /** Stores a session that was opened elsewhere, as `signIn` does. */
  async resume(session: Session): Promise<void> {
    await this.#loading;
    await this.#save(session);
  }

  /** Ends the session; here even when the API cannot be reached. */
  async signOut(options: RequestOptions = {}): Promise<void> {
    await this.#loading;
    if (this.#session === null) return;
    try {
      await this.delete("/auth/sessions/current", options);
    } catch (error) {
      if (!(error instanceof ProblemError && error.status === 401)) throw error;
    } finally {
      await this.#save(null);
    }
  }

  /** Returns the caller's like of a post, comment or review; one object for each target. */
  like(type: TextType, target: Likeable): Reaction {
    return this.#reaction(type, "like", target, target.mine?.liked, totalIn(target, "likes"));
  }

  /** Returns the caller's collect of a post, or of a target of another type. */
  collect(post: Collectable): Reaction;
  collect(type: TextType, target: Collectable): Reaction;
  collect(...given: [Collectable] | [TextType, Collectable]): Reaction {
    const [type, target] = given.length === 1 ? (["post", given[0]] as const) : given;
    return this.#reaction(type, "collect", target, target.mine?.collected, totalIn(target, "collects"));
  }

  /** Returns the caller's follow of a user. */
  follow(user: Followable): Reaction {
    return this.#reaction("user", "follow", user, user.mine?.following, totalIn(user, "followers"));
  }

  /**
   * Returns the caller's reaction of any kind to a target: `plaza.react({ ...post, type: "post" }, "bookmark")`,
   * also to one of the app: `plaza.react({ type: "article", id: "8f3a" }, "like")`.
   * Of a built-in kind it is the object that `like`, `collect` or `follow` returns.
   */
  react(target: Reactable, kind: string): Reaction {
    const read = target.reactions?.[kind];
    return this.#reaction(target.type, kind, target, read?.mine, totalIn(read ?? {}, "total", "at"));
  }

  /**
   * Keeps the totals of a target, or of the target of a reaction, up to date while they are
   * visible, and calls `listener` with each change. Returns a function that ends this.
   */
  live(what: Reaction | LiveRef, listener?: (totals: LiveTotals) => void): () => void {
    const ref = what instanceof Reaction ? what.ref : { type: what.type, id: what.id };
    const key = keyOf(ref);
    const watched = this.#watched.get(key) ?? { ref, count: 0 };
    watched.count += 1;
    this.#watched.set(key, watched);
    const report = () => listener?.({ ...this.#liveTotals(key), stale: this.#isStale });
    const leave = this.#totals.subscribe(key, report);
    this.#staleListeners.add(report);
    if (this.#totals.of(key) !== undefined) report();
    this.#follow();
    return () => {
      if (!this.#staleListeners.delete(report)) return;
      leave();
      watched.count -= 1;
      if (watched.count === 0) this.#watched.delete(key);
      if (this.#watched.size === 0) this.#unfollow();
    };
  }

  /** Returns the caller's unread counter: how many notifications are new. */
  unread(): Unread {
    this.#unread ??= new Unread({
      read: () => this.get("/users/me/notifications/unread", { retry: { attempts: 1 } }),
      mark: (body) => this.put("/users/me/notifications/read", { body }),
      userId: () => this.#session?.user.id,
    });
    return this.#unread;
  }

  /** Orders one unit and waits until the order is decided. Repeated, it returns the same order. */
  async buy(voucherId: string, options: RequestOptions = {}): Promise<Schemas["OrderResponse"]> {
    const path = { voucher_id: voucherId };
    const order = await this.post("/vouchers/{voucher_id}/orders", { ...options, path });
    return order.status === "pending" ? this.waitForOrder(order.order_id, options) : order;
  }

  /** Asks for an order, at the pace of `Retry-After`, until it is decided. */
  async waitForOrder(orderId: string, options: RequestOptions = {}): Promise<Schemas["OrderResponse"]> {
    for (;;) {
      const reply = await this.send("get", "/orders/{order_id}", { ...options, path: { order_id: orderId } });
      if (reply.body.status !== "pending") return reply.body;
      await sleep((reply.retryAfterS ?? ORDER_POLL_S) * 1000, options.signal);
    }
  }

  async #body<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    input: RequestOptions | undefined,
  ): Promise<Result<M, P>> {
    return (await this.#send(method, path, input)).body as Result<M, P>;
  }

  async #send(method: Method, path: string, input: AnyInput = {}): Promise<Reply<unknown>> {
    checkLimits(input);
    const target = expand(method, path, input);
    const body = serialize(input.body);
    const { fetch = globalThis.fetch } = this.#options;
    if (typeof fetch !== "function") throw new PlazaError("This engine has no fetch; pass one as the option `fetch`.");
    await this.#loading;
    const { token } = path === TOTALS ? {} : (this.#session ?? {});
    const headers: Record<string, string> = { accept: "application/json" };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    else if (method === "get" && path === VIEW) {
      const visitorId = await this.#loadVisitorId();
      if (visitorId !== undefined) headers["x-visitor-id"] = visitorId;
    }
    if (body !== undefined) headers["content-type"] = "application/json";
    const keyed = method === "post" && KEYED_PATHS.has(path);
    if (keyed) headers["idempotency-key"] = input.idempotencyKey ?? randomId();
    if (input.ifMatch !== undefined) headers["if-match"] = input.ifMatch;
    // A plain GET needs no CORS preflight; an own header would add one.
    if (token !== undefined || method !== "get") headers["x-request-id"] = `c${randomId()}`;
    const idempotent = method === "get" || method === "put" || method === "delete";
    let began = 0;
    try {
      const reply = await sendWithRetries({
        fetch,
        url: this.#baseUrl + target,
        init: { method: method.toUpperCase(), headers, ...(body !== undefined && { body }) },
        retry: { ...RETRY, ...this.#options.retry, ...input.retry },
        timeoutMs: input.timeoutMs ?? this.#options.timeoutMs ?? TIMEOUT_MS,
        signal: input.signal,
        repeatable: idempotent || keyed || REPEATABLE_POSTS.has(path),
        onAttempt: () => {
          began = this.#tick();
        },
      });
      if (method === "get") this.#remember(reply.body, began);
      const { body: read, etag } = reply;
      // A weak tag is one for caches; a change never matches it.
      if (Object(read) === read && etag?.startsWith('"')) this.#tags.set(read as object, etag);
      return reply;
    } catch (error) {
      const ended = error instanceof ProblemError && error.slug === "unauthenticated";
      if (ended && token !== undefined && token === this.#session?.token) await this.#save(null, "ended");
      throw error;
    }
  }

  /** Returns the stored id, or a new one. After a failure there is none until the page is loaded again. */
  async #loadVisitorId(): Promise<string | undefined> {
    const store = this.#options.visitor;
    if (store === undefined) return undefined;
    const stored = await store.load();
    if (stored !== null && stored.expiresAt > Date.now()) return stored.id;
    const issue = async () => {
      const issued = await this.post("/visitors", { timeoutMs: VISITOR_TIMEOUT_MS });
      await store.save({ id: issued.visitor_id, expiresAt: Date.now() + issued.expires_in * 1000 });
      this.#visitorId = undefined;
      return issued.visitor_id;
    };
    this.#visitorId ??= issue().catch(() => undefined);
    return this.#visitorId;
  }

  #tick(): number {
    this.#clock += 1;
    return this.#clock;
  }

  #remember(body: unknown, began: number): void {
    const { items } = Object(body) as { items?: unknown };
    for (const item of [body, ...(Array.isArray(items) ? items : [])]) {
      if (typeof item !== "object" || item === null) continue;
      this.#readAt.set(item, began);
      const { reactions } = item as Partial<Reactable>;
      if (reactions) this.#readAt.set(reactions, began); // a copy with a type has the same ones
    }
  }

  async #save(session: Session | null, change?: SessionChange): Promise<void> {
    this.#set(session, change);
    await this.#store.save(session, change);
  }

  #set(session: Session | null, change: SessionChange = session === null ? "signed-out" : "signed-in"): void {
    this.#session = session;
    const userId = change === "ended" ? this.#userId : session?.user.id;
    if (userId !== this.#userId) this.#reactions.clear(); // they are the caller's
    this.#userId = userId;
    this.#unread?.follow(session?.user.id);
    for (const listener of [...this.#listeners]) listener(session, change);
  }

  #reaction(
    type: LiveRef["type"],
    kind: string,
    target: Pick<Reactable, "id" | "exact" | "reactions">,
    mine: boolean | null | undefined,
    counted: { total: number | null; at: string | null },
  ): Reaction {
    const ref = { type, id: target.id };
    const key = keyOf(ref);
    const total = nameOf(kind);
    const name = `${key}:${total}`;
    const isNamed = BUILT_IN.has(kind) && OWN_TYPES.has(type);
    const path = isNamed ? `/${type}s/{target_id}/${total}/me` : REACTION;
    const read: Snapshot = { active: mine ?? false, ...counted, exact: target.exact ?? true };
    const began = this.#readAt.get(target) ?? this.#readAt.get(target.reactions ?? target) ?? 0;
    const known = this.#reactions.get(name);
    if (known !== undefined) known.observe(read, began);
    if (read.total !== null) this.#totals.offer(key, total, { total: read.total, at: read.at });
    if (known !== undefined) return known;
    const send = async (active: boolean) => {
      const parameters = { target_type: type, target_id: target.id, kind };
      const { body } = await this.#send(active ? "put" : "delete", path, { path: parameters });
      const answered = isNamed ? totalIn(body as object, total) : totalIn(body as object, "total", "at");
      const { at } = answered;
      if (answered.total !== null && at !== null) {
        this.#totals.offer(key, total, { total: answered.total, at });
        this.#post({ key, name: total, total: answered.total, at, userId: this.#userId, active });
      }
      this.#source?.control.changed();
      return answered;
    };
    const made = new Reaction(ref, send, () => this.#tick(), read, began);
    this.#reactions.set(name, made);
    const newest = this.#totals.of(key)?.get(total);
    if (newest !== undefined) made.offer(newest.total, newest.at);
    this.#dropIdle();
    return made;
  }

  #liveTotals(key: string): Omit<LiveTotals, "stale"> {
    const totals: Record<string, number> = {};
    const reactions: Record<string, number> = {};
    for (const [name, { total }] of this.#totals.of(key) ?? []) {
      if (NAMES.includes(name)) totals[name] = total;
      if (name !== "comments") reactions[KINDS.get(name) ?? name] = total;
    }
    return Object.keys(reactions).length === 0 ? totals : { ...totals, reactions };
  }

  /** Takes over items of `/totals`. Returns whether a total is newer. */
  #report(items: readonly TotalsItem[]): boolean {
    let changed = false;
    for (const item of items) changed = this.#take(keyOf(item), item) || changed;
    this.#setStale(false);
    void this.#readOwnStates();
    return changed;
  }

  #take(key: string, item: object): boolean {
    if (!this.#totals.offerItem(key, item)) return false;
    for (const [name, { total, at }] of this.#totals.of(key) ?? []) {
      this.#reactions.get(`${key}:${name}`)?.offer(total, at);
      if (at !== null) this.#post({ key, name, total, at });
    }
    return true;
  }

  #setStale(isStale: boolean): void {
    if (this.#isStale === isStale) return;
    this.#isStale = isStale;
    for (const listener of [...this.#staleListeners]) listener();
  }

  /** Starts the source with the first watched target. */
  #follow(): void {
    if (this.#source !== undefined) {
      this.#source.control.changed();
      return;
    }
    const presence = this.#options.presence ?? pagePresence();
    const read = async (of: string[], signal: AbortSignal) => {
      const { body, maxAgeS = POLL_S } = await this.send("get", TOTALS, { query: { of }, signal, ...ONCE });
      return { items: body.items, maxAgeS };
    };
    const source = this.#options.live?.(this) ?? pollTotals(read, presence);
    const control = source.start({
      refs: () => [...this.#watched.values()].map(({ ref }) => ref),
      report: (items) => this.#report(items),
      failed: () => this.#setStale(true),
    });
    const leave = presence.subscribe(() => {
      if (!presence.online()) this.#setStale(true);
      if (presence.visible() && presence.online()) control.wake();
    });
    this.#source = { control, leave };
    if (typeof BroadcastChannel === "undefined") return;
    this.#tabs = new BroadcastChannel(`plaza:${this.#baseUrl}`);
    this.#tabs.onmessage = ({ data }) => this.#receive(data as TabMessage);
    (this.#tabs as { unref?: () => void }).unref?.(); // it keeps no process of Node alive
  }

  #unfollow(): void {
    this.#source?.control.stop();
    this.#source?.leave();
    this.#tabs?.close();
    this.#source = this.#tabs = undefined;
  }

  #post(message: TabMessage): void {
    this.#tabs?.postMessage(message);
  }

  /** Takes over what another tab was answered. */
  #receive({ key, name, total, at, userId, active }: TabMessage): void {
    const reaction = this.#reactions.get(`${key}:${name}`);
    if (this.#totals.offer(key, name, { total, at })) reaction?.offer(total, at);
    if (active !== undefined && userId === this.#userId) reaction?.follow(active, at);
  }

  /** Once a minute, reads what another device of the caller did, which public totals do not say. */
  async #readOwnStates(): Promise<void> {
    const now = Date.now();
    if (this.#session === null || now - this.#ownStatesMs < OWN_STATES_MS) return;
    this.#ownStatesMs = now;
    const began = this.#tick();
    const targets = [...this.#watched.values()].flatMap(({ ref: { type, id } }) =>
      type === "user" ? [] : { type, id },
    );
    if (targets.length === 0) return;
    const body = { targets: targets.slice(0, 100) };
    try {
      const reply = await this.post("/reactions/query", { body, ...ONCE });
      for (const item of reply.items) {
        const key = keyOf(item as LiveRef);
        if (item.mine === null) continue;
        for (const [kind, { total, at, mine }] of Object.entries(item.reactions ?? {})) {
          const read = { active: mine ?? false, total, at, exact: reply.exact };
          this.#reactions.get(`${key}:${nameOf(kind)}`)?.observe(read, began);
        }
      }
    } catch {
      // The next minute reads them again.
    }
  }

  #dropIdle(): void {
    for (const [name, reaction] of this.#reactions) {
      if (this.#reactions.size <= MAX_IDLE_REACTIONS) return;
      if (!reaction.inUse) this.#reactions.delete(name);
    }
  }
}

/** What a tab was answered; `active` of a reaction of its user. */
interface TabMessage {
  key: string;
  name: TotalName;
  total: number;
  at: string;
  userId?: string | undefined;
  active?: boolean;
}

/** Polls are repeated anyway. */
const ONCE = { retry: { attempts: 1 } };

/** Returns 128 random bits in hexadecimal, also in React Native and over plain HTTP, which lack parts of `crypto`. */
function randomId(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto) crypto.getRandomValues(bytes);
  else for (const at of bytes.keys()) bytes[at] = Math.random() * 256;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
