import { Frame, findPage, type Link, type Page } from "shared/frame.tsx";
import { useSession } from "shared/hooks.ts";
import { useLanguage } from "shared/language.ts";
import { useRoute } from "shared/router.ts";
import { hasEnded, useReader } from "shared/session.ts";
import { SignIn, SignInDialog } from "shared/sign-in.tsx";
import { Icon } from "shared/ui.tsx";
import { Banners } from "./banners.tsx";
import { OwnSalesOf } from "./own-sales.tsx";
import { CheckIns } from "./pages/check-ins.tsx";
import { Home } from "./pages/home.tsx";
import { Notifications } from "./pages/notifications.tsx";
import { OwnShopPage } from "./pages/own-shops.tsx";
import { PostPage, Write } from "./pages/posts.tsx";
import { Ranking } from "./pages/ranking.tsx";
import { Search } from "./pages/search.tsx";
import { ShopPage } from "./pages/shop.tsx";
import { Shops } from "./pages/shops.tsx";
import { Blocks, Profile, Settings, UserList } from "./pages/users.tsx";
import { t } from "./texts.ts";
import { Badge } from "./unread.tsx";

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
  ["/notifications", () => <Notifications />],
  ["/shops", (_, { query }) => <Shops query={query} />],
  ["/search", (_, { query }) => <Search text={query.get("name") ?? ""} />],
  ["/shops/:id", ({ id = "" }) => <ShopPage id={id} />],
  ["/own-shops/:id", ({ id = "" }, { query }) => <OwnShopPage id={id} tab={query.get("tab")} />],
  ["/check-ins", (_, { query }) => <CheckIns month={query.get("month")} />],
  ["/sign-in", (_, { query }) => <SignIn then={query.get("then") ?? "/"} />],
];
const NEEDS_SESSION = new Set(["/write", "/settings", "/blocks", "/check-ins", "/notifications"]);

function needsSession(path: string): boolean {
  return NEEDS_SESSION.has(path) || path.startsWith("/own-shops/");
}

export function App() {
  const session = useSession();
  const route = useRoute();
  const reader = useReader();
  const language = useLanguage();
  const then = route.path === "/sign-in" ? "" : `?then=${encodeURIComponent(location.hash.slice(1))}`;
  const own = session === null ? `/sign-in${then}` : `/users/${session.user.id}`;
  const alerts: Link[] = session === null ? [] : [["/notifications", t.nav.alerts, "bell", <Badge key="badge" />]];
  const links: Link[] = [
    ["/", session === null ? t.nav.start : t.nav.feed, "home"],
    ["/ranking", t.nav.ranking, "star"],
    ["/shops", t.nav.shops, "pin"],
    ["/search", t.nav.search, "search"],
    ["/check-ins", t.nav.checkIn, "calendar"],
    ...alerts,
    [own, session === null ? t.nav.signIn : t.nav.profile, "person"],
  ];
  const write = session !== null && /^\/(ranking|users\/\d+)?$/.test(route.path) && (
    <a class="write" href="#/write">
      <Icon name="pen" />
      {t.nav.write}
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
        of={`${language}${reader}${route.path}`}
      >
        {session === null && !hasEnded() && needsSession(route.path) ? <SignIn /> : findPage(PAGES, route)}
      </Frame>
      <SignInDialog />
    </OwnSalesOf>
  );
}
