/** Prints what a browser loads for the first page, gzipped; exits with 1 above the limit. */
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_BYTES = 60 * 1024;
const DIST = new URL("../dist/", import.meta.url);
let total = 0;
for (const name of readdirSync(DIST).sort()) {
  const bytes = gzipSync(readFileSync(new URL(name, DIST)), { level: 9 }).length;
  total += bytes;
  console.log(`${name}: ${bytes} bytes gzipped`);
}
console.log(`plaza-app: ${total} bytes gzipped, of at most ${LIMIT_BYTES}`);
process.exitCode = total > LIMIT_BYTES ? 1 : 0;
