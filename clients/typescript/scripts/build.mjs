/** Writes dist: modules, and for `require` and bundlers that read no `exports` dist/cjs. */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
rmSync("dist", { recursive: true, force: true });
for (const project of ["tsconfig.build.json", "tsconfig.cjs.json"]) {
  execFileSync(process.execPath, [compiler, "--project", project], { stdio: "inherit" });
}
writeFileSync("dist/cjs/package.json", '{ "type": "commonjs" }\n');
