/** The client of a page, and what the page says about the deployment. */
import { Plaza, webStore } from "plaza-client";

const meta = document.querySelector<HTMLMetaElement>('meta[name="plaza-api"]');

/** True on the local stack, which shows the texts that it sends. */
export const IS_LOCAL = meta?.dataset.local === "true";

/** Without a URL in the page, the API is where the page came from. */
export const plaza = new Plaza(meta?.content || location.origin, {
  store: webStore(() => localStorage),
  visitor: webStore(() => localStorage, "plaza-visitor"),
});
