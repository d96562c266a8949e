/** How many posts the feed has that are not shown yet; a click shows them. */
import type { Pages } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { currentEntry, refresh, wasLeft } from "shared/router.ts";
import { t } from "./texts.ts";
import type { PostPreview } from "./types.ts";

const EVERY_MS = 20_000;
const HEAD = 10;

export function News({ of: { items, isLoading } }: { of: Pages<PostPreview> }) {
  // A feed that Back shows was read some time ago.
  const afterMs = wasLeft(currentEntry()) ? 0 : EVERY_MS;
  const query = { limit: HEAD };
  const head = useRepeated((signal) => plaza.get("/feed", { query, signal, ...ONCE }), EVERY_MS, afterMs).data;
  const known = new Set(items?.map(({ id }) => id));
  const newest = items?.[0]?.created_at ?? "";
  const unseen = head?.items.filter(({ id, created_at }) => !known.has(id) && created_at >= newest) ?? [];
  return (
    <div class="news" role="status">
      {items !== undefined && unseen.length > 0 && !isLoading && (
        <button type="button" class="small primary" onClick={refresh}>
          {t.news(unseen.length, unseen.length === HEAD)}
        </button>
      )}
    </div>
  );
}
