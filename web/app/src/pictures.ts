/** Pictures of users and posts. */
import { IS_LOCAL } from "shared/plaza.ts";

/** Where the demo crowd's pictures are; the local stack serves them with the page. */
const OF_THE_DEMO = "https://pictures.plaza.example/";

export function pictureUrl(url: string): string {
  return IS_LOCAL && url.startsWith(OF_THE_DEMO) ? url.replace(OF_THE_DEMO, "pictures/") : url;
}
