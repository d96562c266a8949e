import { configure } from "../shared/vite.ts";

export default configure("console");
