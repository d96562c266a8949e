/** Named methods: what the generated `resources.ts` binds to a client. */
import type { ItemOf, ListPath, Result } from "./operations.ts";

/** The first page of a list; with `for await`, the items of all pages. */
export type Listed<P extends ListPath> = Promise<Result<"get", P>> & AsyncIterable<ItemOf<P>>;

interface Page {
  items: unknown[];
  next: string | null;
}
interface Input {
  path: object;
  query?: object;
}
type Send = (path: string, input: Input) => Promise<unknown>;
type Client = Record<string, Send> & { items: (path: string, input: Input) => AsyncIterable<unknown> };

/**
 * Returns a method for each operation: `put /posts/{post_id}/likes/me` takes the parameters of the
 * path, then `RequestOptions`. Between them `=` takes a body, `?` a query, and `*` the query of a list;
 * `+` is a list without a query.
 */
export function bind<Resource>(client: object, operations: Record<keyof Resource, string>): Resource {
  const methods: Record<string, unknown> = {};
  for (const [name, operation] of Object.entries<string>(operations)) {
    const [, method = "", kind = "", path = ""] = /^(\w+)(\W?) (.*)/.exec(operation) ?? [];
    const names = (path.match(/\{\w+/g) ?? []).map((parameter) => parameter.slice(1));
    methods[name] = (...given: unknown[]) => {
      const parameters = Object.fromEntries(names.map((parameter, at) => [parameter, given[at]]));
      const rest = given.slice(names.length);
      const own = /[=?*]/.test(kind) ? { [kind === "=" ? "body" : "query"]: rest.shift() } : {};
      const input: Input = { ...(rest[0] as object), path: parameters, ...own };
      return call(client as Client, method, path, input, /[*+]/.test(kind));
    };
  }
  return methods as Resource;
}

function call(client: Client, method: string, path: string, input: Input, isList: boolean): unknown {
  const first = (client[method] as Send)(path, input);
  if (!isList) return first;
  return Object.assign(first, {
    async *[Symbol.asyncIterator]() {
      const { items, next } = (await first) as Page;
      yield* items;
      if (next !== null) yield* client.items(path, { ...input, query: { ...input.query, cursor: next } });
    },
  });
}
