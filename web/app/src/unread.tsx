/** The badge of the bar: how many notifications are new. */
import { useLayoutEffect, useState } from "preact/hooks";
import { formatNumber } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { t } from "./texts.ts";

/** Follows the unread counter of the caller. */
export function useUnread() {
  const unread = plaza.unread();
  const [state, setState] = useState(unread.state);
  useLayoutEffect(() => {
    setState(unread.state);
    return unread.subscribe(setState);
  }, [unread]);
  return state;
}

/** The number of new notifications, without a cap; nothing for none. */
export function Badge() {
  const { unread, stale } = useUnread();
  if (unread === null || unread === 0) return null;
  return (
    <b class={stale ? "badge stale" : "badge"}>
      <span aria-hidden="true">{formatNumber(unread)}</span>
      <span class="hidden">{t.notifications.unread(unread)}</span>
    </b>
  );
}
