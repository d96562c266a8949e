/**
 * Asks the search of a built site, as its page does: `node ask_site.mjs HTML QUESTION...`. Prints the
 * locations of the first page of results by question, as JSON.
 */
import { readdirSync, readFileSync } from "node:fs";
import vm from "node:vm";

const [html, ...questions] = process.argv.slice(2);
const workers = `${html}/assets/javascripts/workers`;
const [name] = readdirSync(workers).filter((file) => /^search\..*\.js$/.test(file));
const base = "https://docs.example/plaza/";
const index = JSON.parse(readFileSync(`${html}/search.json`, "utf8"));
for (const item of index.items) item.location = base + item.location;

let receive;
const worker = { Intl, postMessage: (message) => receive(message) };
worker.self = worker;
vm.runInNewContext(readFileSync(`${workers}/${name}`, "utf8"), worker);

/** Sends a message to the worker, and returns its answer. */
function send(message) {
  return new Promise((resolve, reject) => {
    receive = (answer) => (answer.type === 4 ? reject(new Error("the search failed")) : resolve(answer));
    worker.onmessage({ data: structuredClone(message) });
  });
}

const filter = {
  input: { type: "operator", data: { operator: "and", operands: [] } },
  aggregation: { input: [{ type: "term", data: { field: "tags" } }] },
};
const results = {};
await send({ type: 0, data: index });
for (const input of questions) {
  const { data } = await send({ type: 2, data: { input, filter } });
  results[input] = data.items.map((item) => index.items[item.id].location.replace(base, ""));
}
console.log(JSON.stringify(results));
