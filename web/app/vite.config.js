import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  base: "./", // the app works under any path: its routes are in the fragment
  resolve: {
    alias: { "plaza-client": fileURLToPath(new URL("../../clients/typescript/src/index.ts", import.meta.url)) },
  },
  build: {
    target: "es2022",
    modulePreload: false,
    rolldownOptions: {
      // Fixed names: the built files are in the repository.
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]" },
    },
  },
});
