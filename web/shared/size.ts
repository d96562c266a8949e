/**
 * `size.ts NAME`: prints what a browser loads for a page, gzipped, with the largest catalogue of
 * another language than English; exits with 1 above the limit.
 */
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT_BYTES = 60 * 1024;
const [, , name] = process.argv;
const DIST = new URL(`../${name}/dist/`, import.meta.url);
const CATALOGUE = /^[a-z]{2}\.js$/;
let total = 0;
let largest = 0;
for (const file of readdirSync(DIST).sort()) {
  const bytes = gzipSync(readFileSync(new URL(file, DIST)), { level: 9 }).length;
  if (CATALOGUE.test(file)) largest = Math.max(largest, bytes);
  else total += bytes;
  console.log(`${file}: ${bytes} bytes gzipped`);
}
total += largest;
console.log(`plaza-${name}: ${total} bytes gzipped, of at most ${LIMIT_BYTES}`);
process.exitCode = total > LIMIT_BYTES ? 1 : 0;
