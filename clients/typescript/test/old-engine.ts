/**
 * Deletes what browsers and JavaScript got in 2022 or later, and what React Native lacks, before
 * the tests of a file run: `node --import ./test/old-engine.ts --test "test/*.test.ts"`.
 */
type Names = Record<string, unknown>;

const TYPED_ARRAY = Object.getPrototypeOf(Uint8Array.prototype) as Names;
const GLOBALS = [
  "AsyncDisposableStack",
  "CompressionStream",
  "CustomEvent",
  "DecompressionStream",
  "DisposableStack",
  "File",
  "Float16Array",
  "Iterator",
  "SuppressedError",
  "URL",
  "URLPattern",
  "URLSearchParams",
  "WebSocket",
  "WebSocketStream",
  "crypto",
  "navigator",
  "reportError",
  "scheduler",
  "structuredClone",
];
const ARRAY = ["at", "findLast", "findLastIndex", "toReversed", "toSorted", "with"];
const ITERATOR = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]())) as Names;

const deleted: [unknown, string[]][] = [
  [AbortSignal, ["abort", "any", "timeout"]],
  [AbortSignal.prototype, ["reason", "throwIfAborted"]],
  [Array, ["fromAsync"]],
  [Array.prototype, [...ARRAY, "group", "groupToMap", "toSpliced"]],
  [ArrayBuffer.prototype, ["detached", "maxByteLength", "resizable", "resize", "transfer", "transferToFixedLength"]],
  [Atomics, ["pause", "waitAsync"]],
  [Error, ["isError"]],
  [Headers.prototype, ["getSetCookie"]],
  [ITERATOR, ["drop", "every", "filter", "find", "flatMap", "forEach", "map", "reduce", "some", "take", "toArray"]],
  [JSON, ["isRawJSON", "rawJSON"]],
  [Map, ["groupBy"]],
  [Map.prototype, ["getOrInsert", "getOrInsertComputed"]],
  [Math, ["f16round", "sumPrecise"]],
  [Object, ["groupBy", "hasOwn"]],
  [Promise, ["try", "withResolvers"]],
  [Reflect.get(globalThis, "RegExp") as unknown, ["escape"]],
  [RegExp.prototype, ["hasIndices", "unicodeSets"]],
  [Request.prototype, ["bytes", "duplex"]],
  [Response, ["json"]],
  [Response.prototype, ["bytes"]],
  [
    Set.prototype,
    ["difference", "intersection", "isDisjointFrom", "isSubsetOf", "isSupersetOf", "symmetricDifference", "union"],
  ],
  [String.prototype, ["at", "isWellFormed", "toWellFormed"]],
  [TYPED_ARRAY, ARRAY],
  [URL, ["canParse", "parse"]],
  [URLSearchParams.prototype, ["size"]],
  [Uint8Array, ["fromBase64", "fromHex"]],
  [Uint8Array.prototype, ["setFromBase64", "setFromHex", "toBase64", "toHex"]],
  [globalThis, GLOBALS],
];
for (const [from, names] of deleted) {
  for (const name of names) {
    if (!Reflect.deleteProperty(from as object, name)) throw new Error(`${name} cannot be deleted`);
  }
}
