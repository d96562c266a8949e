import { Frame, findPage, type Link, type Page } from "shared/frame.tsx";
import { useSession } from "shared/hooks.ts";
import { useRoute } from "shared/router.ts";
import { SignIn } from "shared/sign-in.tsx";
import { Icon } from "shared/ui.tsx";
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
  ["/sign-in", () => <SignIn />],
];
const NEEDS_SESSION = new Set(["/write", "/settings", "/blocks", "/check-ins"]);

export function App() {
  const session = useSession();
  const route = useRoute();
  const own = session === null ? "/sign-in" : `/users/${session.user.id}`;
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
    <Frame name="Plaza" icon="heart" links={links} route={route} action={write} of={`${session?.token}${route.path}`}>
      {session === null && NEEDS_SESSION.has(route.path) ? <SignIn then={route.path} /> : findPage(PAGES, route)}
    </Frame>
  );
}
