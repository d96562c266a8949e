import { configure } from "../shared/vite.ts";

export default configure("app", { "push-worker": "push-worker.ts" });
