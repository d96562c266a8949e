import { fileURLToPath } from "node:url";
import type { UserConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Returns how Vite builds one of the web pages, `app` or `console`. */
export function configure(name: string): UserConfig {
  return {
    base: "./", // the pages work under any path: their routes are in the fragment
    resolve: { alias: { shared: here("."), "plaza-client": here("../../clients/typescript/src/index.ts") } },
    build: {
      target: "es2022",
      modulePreload: false,
      rolldownOptions: {
        // Fixed names: the built files are in the repository.
        output: { entryFileNames: `${name}.js`, assetFileNames: `${name}[extname]` },
      },
    },
  };
}
