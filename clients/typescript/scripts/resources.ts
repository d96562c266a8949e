/**
 * The named methods: `plaza.posts.like(id)` for the operation `like_post` of `/posts/{post_id}/likes/me`.
 *
 * The resource is the first part of the path; below a target it is the part that follows its type and its
 * id, so `set_reaction` is `plaza.reactions.set`. The method is the id of the operation without the name of
 * the resource, so `list_post_likers` is `plaza.posts.listLikers`.
 */
export interface Operation {
  operationId: string;
  summary: string;
  parameters?: { in: string; name: string; required?: boolean }[];
  requestBody?: { required?: boolean };
  responses: Record<string, unknown>;
}

interface Call {
  name: string;
  /** What the call does, in the contract's words. */
  summary: string;
  /** The arguments and the result, as TypeScript. */
  signature: string;
  /** How `bind` sends it: the method, what its argument is, and the path. */
  request: string;
}

const camel = (words: string[]) =>
  words.map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join("");
const RESOURCE = /^\/(?:targets\/(?:\{\w+\}\/)*)?([\w-]+)/;
const singular = (noun: string) => noun.replace(/s$/, "");

/** Returns the words of an operation's id without those that name the resource: one or two, in a row. */
function nameCall(operationId: string, resource: string): string {
  const words = operationId.split("_");
  for (let at = 1; at < words.length; at += 1) {
    for (const length of [2, 1]) {
      const named = words.slice(at, at + length).join("");
      if (singular(named) === singular(resource.toLowerCase())) words.splice(at, length);
    }
  }
  return camel(words);
}

function describeCall(method: string, path: string, operation: Operation, resource: string, isList: boolean): Call {
  const { operationId, summary, parameters = [], requestBody } = operation;
  const queries = parameters.filter((parameter) => parameter.in === "query");
  if (requestBody !== undefined && queries.length > 0) throw new Error(`${operationId} has a body and a query`);
  const of = `"${method}", "${path}"`;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => `${camel(name.split("_"))}: string`);
  if (requestBody !== undefined) names.push(`body: BodyOf<${of}>`);
  if (queries.length > 0) names.push(`query${queries.some((query) => query.required) ? "" : "?"}: QueryOf<"${path}">`);
  const ofGet = queries.length > 0 ? (isList ? "*" : "?") : isList ? "+" : "";
  const kind = requestBody !== undefined ? "=" : ofGet;
  return {
    name: nameCall(operationId, resource),
    summary,
    signature: `(${[...names, "options?: RequestOptions"].join(", ")}): ${isList ? `Listed<"${path}">` : `Promise<Result<${of}>>`}`,
    request: `${method}${kind} ${path}`,
  };
}

/** Returns whether the answer to a GET is a page of items. */
function returnsPage(operation: Operation, document: { components?: { schemas?: Record<string, unknown> } }): boolean {
  const text = JSON.stringify(operation.responses["200"] ?? {});
  const [, schema = ""] = /#\/components\/schemas\/(\w+)/.exec(text) ?? [];
  const { properties = {} } = (document.components?.schemas?.[schema] ?? {}) as { properties?: object };
  return "items" in properties && "next" in properties;
}

/** Returns the source of the class that all named methods are in. Throws when two have one name. */
export function describeResources(paths: Record<string, Record<string, Operation>>, document: object): string {
  const resources = new Map<string, Call[]>();
  for (const [path, methods] of Object.entries(paths)) {
    const resource = camel((RESOURCE.exec(path)?.[1] ?? "").split("-"));
    const calls = resources.get(resource) ?? [];
    resources.set(resource, calls);
    for (const [method, operation] of Object.entries(methods)) {
      const isList = method === "get" && returnsPage(operation, document);
      const call = describeCall(method, path, operation, resource, isList);
      if (calls.some((other) => other.name === call.name)) throw new Error(`${resource}.${call.name} is twice`);
      calls.push(call);
    }
  }
  const sorted = [...resources].sort(([one], [other]) => (one < other ? -1 : 1));
  const interfaces = sorted.map(
    ([resource, calls]) => `export interface ${title(resource)} {
${calls.map(({ name, summary, signature }) => `  /** ${summary}. */\n  ${name}${signature};`).join("\n")}
}
`,
  );
  const fields = sorted.map(
    ([resource, calls]) => `  readonly ${resource} = bind<${title(resource)}>(this, {
${calls.map(({ name, request }) => `    ${name}: "${request}",`).join("\n")}
  });`,
  );
  return `import { bind, type Listed } from "./bind.ts";
import type { BodyOf, QueryOf, RequestOptions, Result } from "./operations.ts";

${interfaces.join("\n")}
/** A method for each operation of the API. */
export abstract class Resources {
${fields.join("\n")}
}
`;
}

const title = (name: string) => `${name.charAt(0).toUpperCase()}${name.slice(1)}Resource`;
