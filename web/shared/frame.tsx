/** What all pages stand in: the bar with its links, the page of the route, texts and messages. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useErrorBoundary, useState } from "preact/hooks";
import { useReconnect } from "./hooks.ts";
import { match, type Route, refresh, useScrollPosition } from "./router.ts";
import { Texts } from "./sign-in.tsx";
import { shared } from "./texts.ts";
import { Toasts } from "./toast.tsx";
import { Empty, Icon, type IconName, Problem, Title } from "./ui.tsx";

export type Page = (parameters: Record<string, string>, route: Route) => JSX.Element;
export type Link = [path: string, label: string, icon: IconName, badge?: JSX.Element];

/** Returns the page of a route; a page that says so if there is none. */
export function findPage(pages: [pattern: string, page: Page][], route: Route): JSX.Element {
  for (const [pattern, page] of pages) {
    const parameters = match(pattern, route.path);
    if (parameters !== null) return page(parameters, route);
  }
  return (
    <>
      <Title text={shared.notFound.title} />
      <Empty icon="pin" title={shared.notFound.text}>
        <a class="button" href="#/">
          {shared.notFound.back}
        </a>
      </Empty>
    </>
  );
}

interface FrameProps {
  name: string;
  icon: IconName;
  links: Link[];
  route: Route;
  /** Shown below the links. */
  action?: ComponentChildren;
  /** Shown above all pages. */
  notices?: ComponentChildren;
  /** The page; it is created again when `of` changes. */
  children: ComponentChildren;
  of: string;
}

export function Frame({ name, icon, links, route, action, notices, children, of }: FrameProps) {
  useScrollPosition(route);
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: a skip link; the fragment of the URL is the route */}
      <a class="skip" href="#main" onClick={focusTitle}>
        {shared.skip}
      </a>
      <Offline />
      {notices}
      <div class="frame">
        <nav class="bar" aria-label={shared.main}>
          <a class="brand" href="#/" aria-label={shared.start(name)}>
            <span aria-hidden="true">
              <Icon name={icon} />
            </span>
            {name}
          </a>
          <ul>
            {links.map(([path, label, symbol, badge]) => (
              <li key={symbol}>
                <a
                  href={`#${path}`}
                  {...(route.path === path && { "aria-current": "page" as const, onClick: readAgain })}
                >
                  <Icon name={symbol} />
                  {label}
                  {badge}
                </a>
              </li>
            ))}
          </ul>
          {action}
        </nav>
        <main id="main" key={of}>
          <Boundary>{children}</Boundary>
        </main>
      </div>
      <Texts />
      <Toasts />
    </>
  );
}

/** Reads the page of a link again that is followed where it leads to. */
function readAgain(event: MouseEvent): void {
  if (event.metaKey || event.ctrlKey || event.shiftKey) return; // another tab
  event.preventDefault();
  refresh();
}

/** Shows an error of the page in its place, instead of nothing. */
function Boundary({ children }: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((reason: unknown) => console.error(reason));
  if (error === undefined) return <>{children}</>;
  return (
    <>
      <Title text={shared.crashed} />
      <Problem error={error} retry={reset} />
    </>
  );
}

/** Says that the browser has no network; what needs it is tried again when it is back. */
function Offline() {
  const [isOffline, setOffline] = useState(!navigator.onLine);
  useReconnect(() => setOffline(false));
  useEffect(() => {
    const lose = () => setOffline(true);
    addEventListener("offline", lose);
    return () => removeEventListener("offline", lose);
  }, []);
  return (
    <p class="offline" role="status">
      {isOffline && shared.offline}
    </p>
  );
}

function focusTitle(event: Event): void {
  event.preventDefault();
  document.querySelector("h1")?.focus();
}
