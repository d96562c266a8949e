/**
 * Measures pages: settings on stdin, reports on stdout, as JSON. A session is stored before its page is
 * loaded, as the web pages store it. Of several runs of a page the one with the median performance counts,
 * as Lighthouse recommends.
 */
import { text } from "node:stream/consumers";
import lighthouse from "lighthouse";
import { computeMedianRun } from "lighthouse/core/lib/median-run.js";
import puppeteer from "puppeteer-core";

const { browser: path, profile, sandbox, categories, runs, targets } = JSON.parse(await text(process.stdin));
const browser = await puppeteer.launch({
  executablePath: path,
  userDataDir: profile,
  args: sandbox ? [] : ["--no-sandbox"],
});
const flags = { onlyCategories: categories, disableStorageReset: true, logLevel: "error" };
const reports = [];
for (const { name, url, session } of targets) {
  const page = await browser.newPage();
  await page.goto(new URL("/robots.txt", url).href);
  await page.evaluate((stored) => {
    localStorage.clear();
    if (stored) localStorage.setItem("plaza-session", stored);
  }, session && JSON.stringify(session));
  const results = [];
  for (let run = 0; run < runs; run += 1) results.push((await lighthouse(url, flags, undefined, page)).lhr);
  const lhr = computeMedianRun(results);
  const scores = categories.map((id) => [id, Math.round((lhr.categories[id].score ?? 0) * 100)]);
  const failed = categories.flatMap((id) =>
    lhr.categories[id].auditRefs
      .filter((ref) => ref.weight > 0 && (lhr.audits[ref.id].score ?? 1) < 0.9)
      .map((ref) => {
        const { title, displayValue, details } = lhr.audits[ref.id];
        const first = details?.items?.[0]?.node?.snippet ?? details?.items?.[0]?.description ?? "";
        return [id, title, displayValue, first].filter(Boolean).join("; ");
      }),
  );
  if (lhr.runtimeError) failed.push(lhr.runtimeError.message);
  reports.push({ name, version: lhr.lighthouseVersion, scores: Object.fromEntries(scores), failed });
  await page.close();
}
await browser.close();
console.log(JSON.stringify(reports));
