/** What all pages stand in: the bar with its links, the page of the route, texts and messages. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { match, type Route } from "./router.ts";
import { Texts } from "./sign-in.tsx";
import { Toasts } from "./toast.tsx";
import { Empty, Icon, type IconName, Title } from "./ui.tsx";

export type Page = (parameters: Record<string, string>, route: Route) => JSX.Element;
export type Link = [path: string, label: string, icon: IconName];

/** Returns the page of a route; a page that says so if there is none. */
export function findPage(pages: [pattern: string, page: Page][], route: Route): JSX.Element {
  for (const [pattern, page] of pages) {
    const parameters = match(pattern, route.path);
    if (parameters !== null) return page(parameters, route);
  }
  return (
    <>
      <Title text="Not found" />
      <Empty icon="pin" title="There is no such page.">
        <a class="button" href="#/">
          To the start
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
  /** The page; it is created again when `of` changes. */
  children: ComponentChildren;
  of: string;
}

export function Frame({ name, icon, links, route, action, children, of }: FrameProps) {
  useEffect(() => scrollTo(0, 0), [route.path]);
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: a skip link; the fragment of the URL is the route */}
      <a class="skip" href="#main" onClick={focusTitle}>
        Skip to content
      </a>
      <div class="frame">
        <nav class="bar" aria-label="Main">
          <a class="brand" href="#/" aria-label={`${name}, start`}>
            <span aria-hidden="true">
              <Icon name={icon} />
            </span>
            {name}
          </a>
          <ul>
            {links.map(([path, label, symbol]) => (
              <li key={symbol}>
                <a href={`#${path}`} {...(route.path === path && { "aria-current": "page" as const })}>
                  <Icon name={symbol} />
                  {label}
                </a>
              </li>
            ))}
          </ul>
          {action}
        </nav>
        <main id="main" key={of}>
          {children}
        </main>
      </div>
      <Texts />
      <Toasts />
    </>
  );
}

function focusTitle(event: Event): void {
  event.preventDefault();
  document.querySelector("h1")?.focus();
}
