import type { Notification, NotificationPage, Schemas } from "plaza-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { plaza } from "shared/plaza.ts";
import { sayRefusal } from "shared/toast.tsx";
import { Ago, Empty, Problem, Skeleton, Title } from "shared/ui.tsx";
import { Avatar } from "../people.tsx";
import { analyse } from "../texts/notification.ts";
import { t } from "../texts.ts";
import { useUnread } from "../unread.tsx";

function keyOf({ kind, subject }: Notification): string {
  return `${kind} ${subject.type} ${subject.id}`;
}

/** Returns the page of what a notification is about; of a review and of a comment there is none. */
function hrefOf({ kind, subject }: Notification, userId: string): string | undefined {
  if (kind === "follow") return `#/users/${userId}/followers`;
  return subject.type === "post" ? `#/posts/${subject.id}` : (subject.url ?? undefined);
}

export function Notifications() {
  const unread = plaza.unread();
  const state = useUnread();
  const [pages, setPages] = useState<NotificationPage[]>([]);
  const [error, setError] = useState<unknown>();
  const [isLoading, setLoading] = useState(false);
  const reads = useRef<AbortController | undefined>(undefined);

  const load = async (before: NotificationPage[]) => {
    reads.current?.abort();
    reads.current = new AbortController();
    const { signal } = reads.current;
    setLoading(true);
    setError(undefined);
    try {
      const cursor = before[before.length - 1]?.next;
      const query = { limit: 20, ...(cursor && { cursor }) };
      const page = await plaza.get("/users/me/notifications", { query, signal });
      unread.observe(page);
      setPages([...before, page]);
    } catch (reason) {
      if (!signal.aborted) setError(reason);
    }
    if (!signal.aborted) setLoading(false);
  };
  useEffect(() => {
    void load([]);
    return () => reads.current?.abort();
  }, []);

  const [first] = pages;
  const last = pages[pages.length - 1];
  // A group that notified while later pages were read is on two of them.
  const items = [
    ...new Map(
      pages
        .flatMap((page) => page.items)
        .reverse()
        .map((item) => [keyOf(item), item]),
    ).values(),
  ];
  items.reverse();
  const mark = async (item?: Notification) => {
    if (first === undefined) return;
    const { id, type } = item?.subject ?? {};
    const groups = item && [{ kind: item.kind, subject: { type, id } } as Schemas["NotificationRef"]];
    try {
      await unread.markRead({ at: first.at, items }, groups);
      if (item === undefined) await load([]);
    } catch (reason) {
      sayRefusal(reason);
    }
  };
  const hasNews = first !== undefined && state.at !== null && state.at > first.at && (state.unread ?? 0) > 0;
  return (
    <section>
      <Title
        text={t.notifications.title}
        actions={
          <button
            type="button"
            class="small"
            disabled={first === undefined || !state.unread}
            onClick={() => void mark()}
          >
            {t.notifications.markAll}
          </button>
        }
      />
      <div class="news" role="status">
        {hasNews && !isLoading && (
          <button type="button" class="small primary" onClick={() => void load([])}>
            {t.notifications.showNew}
          </button>
        )}
      </div>
      <Problem error={error} retry={() => void load(pages)} />
      {first === undefined && error === undefined && <Skeleton />}
      {first !== undefined && items.length === 0 && last?.next === null && (
        <Empty icon="bell" title={t.notifications.title}>
          <p>{t.notifications.empty}</p>
        </Empty>
      )}
      <ul class="list notifications">
        {items.map((item) => (
          <Item key={keyOf(item)} item={item} onOpen={() => void (item.read || mark(item))} />
        ))}
      </ul>
      {last !== undefined && last.next !== null && (
        <button type="button" disabled={isLoading} onClick={() => void load(pages)}>
          {t.notifications.more}
        </button>
      )}
    </section>
  );
}

function Item({ item, onOpen }: { item: Notification; onOpen: () => void }) {
  const href = hrefOf(item, plaza.session?.user.id ?? "");
  const text = (
    <span>
      <span class="what">{t.notifications.sentence(analyse(item))}</span>
      <small>
        <Ago at={item.changed_at} />
        {item.fresh > 0 && <b class="fresh">{t.notifications.fresh(item.fresh)}</b>}
      </small>
    </span>
  );
  const [actor] = item.actors;
  const content = (
    <>
      {actor !== undefined && <Avatar user={actor} />}
      {text}
    </>
  );
  return (
    <li class={item.read ? "notification card" : "notification card unread"}>
      {href === undefined ? (
        <button type="button" class="plain" onClick={onOpen}>
          {content}
        </button>
      ) : (
        <a href={href} onClick={onOpen}>
          {content}
        </a>
      )}
    </li>
  );
}
