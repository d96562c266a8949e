import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { useSession } from "./hooks.ts";
import { CheckIns } from "./pages/check-ins.tsx";
import { Home } from "./pages/home.tsx";
import { PostPage, Write } from "./pages/posts.tsx";
import { Ranking } from "./pages/ranking.tsx";
import { ShopPage } from "./pages/shop.tsx";
import { Shops } from "./pages/shops.tsx";
import { SignIn, Texts } from "./pages/sign-in.tsx";
import { Profile, Settings, UserList } from "./pages/users.tsx";
import { match, type Route, useRoute } from "./router.ts";
import { Toasts } from "./toast.tsx";
import { Empty, Icon, type IconName, Title } from "./ui.tsx";

type Page = (parameters: Record<string, string>, route: Route) => JSX.Element;

const PAGES: [pattern: string, page: Page][] = [
  ["/", () => <Home />],
  ["/ranking", (_, { query }) => <Ranking window={query.get("window")} />],
  ["/posts/:id", ({ id = "" }) => <PostPage id={id} />],
  ["/write", () => <Write />],
  ["/users/:id", ({ id = "" }, { query }) => <Profile id={id} tab={query.get("tab")} />],
  ["/users/:id/followers", ({ id = "" }) => <UserList id={id} of="followers" />],
  ["/users/:id/following", ({ id = "" }) => <UserList id={id} of="following" />],
  ["/settings", () => <Settings />],
  ["/shops", (_, { query }) => <Shops query={query} />],
  ["/shops/:id", ({ id = "" }) => <ShopPage id={id} />],
  ["/check-ins", (_, { query }) => <CheckIns month={query.get("month")} />],
  ["/sign-in", () => <SignIn />],
];
const NEEDS_SESSION = new Set(["/write", "/settings", "/check-ins"]);

function Unknown() {
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

function show(route: Route, isSignedIn: boolean): JSX.Element {
  if (!isSignedIn && NEEDS_SESSION.has(route.path)) return <SignIn then={route.path} />;
  for (const [pattern, page] of PAGES) {
    const parameters = match(pattern, route.path);
    if (parameters !== null) return page(parameters, route);
  }
  return <Unknown />;
}

export function App() {
  const session = useSession();
  const route = useRoute();
  useEffect(() => scrollTo(0, 0), [route.path]);
  const own = session === null ? "/sign-in" : `/users/${session.user.id}`;
  const links: [href: string, label: string, icon: IconName][] = [
    ["/", session === null ? "Start" : "Feed", "home"],
    ["/ranking", "Ranking", "star"],
    ["/shops", "Shops", "pin"],
    ["/check-ins", "Check in", "calendar"],
    [own, session === null ? "Sign in" : "Profile", "person"],
  ];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.querySelector("h1")?.focus())}>
        Skip to content
      </a>
      <div class="frame">
        <nav class="bar" aria-label="Main">
          <a class="brand" href="#/" aria-label="Plaza, start">
            <span aria-hidden="true">
              <Icon name="heart" />
            </span>
            Plaza
          </a>
          <ul>
            {links.map(([path, label, icon]) => (
              <li key={icon}>
                <a href={`#${path}`} {...(route.path === path && { "aria-current": "page" as const })}>
                  <Icon name={icon} />
                  {label}
                </a>
              </li>
            ))}
          </ul>
          {session !== null && /^\/(ranking|users\/\d+)?$/.test(route.path) && (
            <a class="write" href="#/write">
              <Icon name="pen" />
              Write
            </a>
          )}
        </nav>
        <main id="main" key={`${session?.token}${route.path}`}>
          {show(route, session !== null)}
        </main>
      </div>
      <Texts />
      <Toasts />
    </>
  );
}
