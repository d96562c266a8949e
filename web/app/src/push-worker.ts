/** The service worker: shows what is pushed, and opens its page. It keeps no page and answers no request. */
import { hrefOf, type Push, say } from "./texts/push.ts";

interface Shown extends Notification {
  data: { href: string; at: string } | undefined;
}

interface Waiting extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface Worker {
  addEventListener(type: "push", listener: (event: Waiting & { data: { json(): Push } | null }) => void): void;
  addEventListener(type: "notificationclick", listener: (event: Waiting & { notification: Shown }) => void): void;
  registration: {
    scope: string;
    getNotifications(filter: { tag: string }): Promise<Shown[]>;
    showNotification(title: string, options: NotificationOptions): Promise<void>;
  };
  clients: {
    matchAll(options: {
      type: "window";
      includeUncontrolled: boolean;
    }): Promise<{ url: string; focus(): Promise<unknown>; navigate(url: string): Promise<unknown> }[]>;
    openWindow(url: string): Promise<unknown>;
  };
}

const worker = self as unknown as Worker;
/** The language that the user chose, which the page put into the URL of this script. */
const chosen = new URLSearchParams(location.search).getAll("lang");
const device = navigator as Navigator & { setAppBadge?: (count: number) => Promise<void> };

/** Shows a push, unless a later one of the same topic is shown: services may deliver out of order. */
async function show(push: Push): Promise<void> {
  const shown = await worker.registration.getNotifications({ tag: push.topic });
  if (shown.some((other) => other.data !== undefined && other.data.at > push.at)) return;
  const { text, lang } = say(push, [...chosen, ...navigator.languages]);
  await worker.registration.showNotification("Plaza", {
    body: text,
    lang,
    tag: push.topic,
    data: { href: hrefOf(push), at: push.at },
  });
  await device.setAppBadge?.(push.unread).catch(() => undefined);
}

/** Opens a page in a window that is open, or in a new one. */
async function open(href: string): Promise<void> {
  const url = new URL(href, worker.registration.scope).href;
  const windows = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  const [own] = windows.filter((other) => other.url.startsWith(worker.registration.scope));
  if (own === undefined) await worker.clients.openWindow(url);
  else {
    await own.focus();
    await own.navigate(url);
  }
}

worker.addEventListener("push", (event) => {
  if (event.data !== null) event.waitUntil(show(event.data.json()));
});
worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data?.href ?? ""));
});
