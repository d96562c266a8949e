import { fileURLToPath } from "node:url";
import type { UserConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What a page shows until its script has arrived; `main.tsx` replaces it. */
const SHELL = `<div id="app">
      <div class="frame">
        <nav class="bar" aria-label="Main"></nav>
        <main>
          <div class="skeleton" role="status">
            <span class="hidden">Loading</span>
            <div aria-hidden="true"><i></i><i></i><i></i></div>
            <div aria-hidden="true"><i></i><i></i><i></i></div>
          </div>
        </main>
      </div>
    </div>`;

/** Returns how Vite builds one of the web pages, `app` or `console`, and the scripts of `src` beside it. */
export function configure(name: string, scripts: Record<string, string> = {}): UserConfig {
  const beside = Object.entries(scripts).map(([script, file]) => [script, here(`../${name}/src/${file}`)]);
  return {
    plugins: [{ name: "shell", transformIndexHtml: (html) => html.replace('<div id="app"></div>', SHELL) }],
    base: "./", // the pages work under any path: their routes are in the fragment
    resolve: { alias: { shared: here("."), "plaza-client": here("../../clients/typescript/src/index.ts") } },
    build: {
      target: "es2022",
      modulePreload: false,
      rolldownOptions: {
        input: { [name]: here(`../${name}/index.html`), ...Object.fromEntries(beside) },
        // Fixed names: the built files are in the repository.
        output: { entryFileNames: "[name].js", chunkFileNames: "[name].js", assetFileNames: `${name}[extname]` },
      },
    },
  };
}
