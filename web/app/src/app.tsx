import { Frame, findPage, type Link, type Page } from "shared/frame.tsx";
import { useSession } from "shared/hooks.ts";
import { useRoute } from "shared/router.ts";
import { hasEnded, useReader } from "shared/session.ts";
import { SignIn, SignInDialog } from "shared/sign-in.tsx";
import { Icon } from "shared/ui.tsx";
import { Banners } from "./banners.tsx";
import { OwnSalesOf } from "./own-sales.tsx";
import { CheckIns } from "./pages/check-ins.tsx";
import { Home } from "./pages/home.tsx";
import { PostPage, Write } from "./pages/posts.tsx";
import { Ranking } from "./pages/ranking.tsx";
import { ShopPage } from "./pages/shop.tsx";
import { Shops } from "./pages/shops.tsx";
import { Blocks, Profile, Settings, UserList } from "./pages/users.tsx";

const PAGES: [pattern: string, page: Page][] = [
  ["/", () => <Home />],
  ["/ranking", (_, { query }) => <Ranking window={query.get("window")} />],
  ["/posts/:id", ({ id = "" }) => <PostPage id={id} />],
  ["/write", () => <Write />],
  ["/users/:id", ({ id = "" }, { query }) => <Profile id={id} tab={query.get("tab")} />],
  ["/users/:id/followers", ({ id = "" }) => <UserList id={id} of="followers" />],
  ["/users/:id/following", ({ id = "" }) => <UserList id={id} of="following" />],
  ["/settings", () => <Settings />],
  ["/blocks", () => <Blocks />],
  ["/shops", (_, { query }) => <Shops query={query} />],
  ["/shops/:id", ({ id = "" }) => <ShopPage id={id} />],
  ["/check-ins", (_, { query }) => <CheckIns month={query.get("month")} />],
  ["/sign-in", (_, { query }) => <SignIn then={query.get("then") ?? "/"} />],
];
const NEEDS_SESSION = new Set(["/write", "/settings", "/blocks", "/check-ins"]);

export function App() {
  const session = useSession();
  const route = useRoute();
  const reader = useReader();
  const then = route.path === "/sign-in" ? "" : `?then=${encodeURIComponent(location.hash.slice(1))}`;
  const own = session === null ? `/sign-in${then}` : `/users/${session.user.id}`;
  const links: Link[] = [
    ["/", session === null ? "Start" : "Feed", "home"],
    ["/ranking", "Ranking", "star"],
    ["/shops", "Shops", "pin"],
    ["/check-ins", "Check in", "calendar"],
    [own, session === null ? "Sign in" : "Profile", "person"],
  ];
  const write = session !== null && /^\/(ranking|users\/\d+)?$/.test(route.path) && (
    <a class="write" href="#/write">
      <Icon name="pen" />
      Write
    </a>
  );
  return (
    <OwnSalesOf>
      <Frame
        name="Plaza"
        icon="heart"
        links={links}
        route={route}
        action={write}
        notices={<Banners />}
        of={`${reader}${route.path}`}
      >
        {session === null && !hasEnded() && NEEDS_SESSION.has(route.path) ? <SignIn /> : findPage(PAGES, route)}
      </Frame>
      <SignInDialog />
    </OwnSalesOf>
  );
}
