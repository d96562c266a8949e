import type { Session } from "plaza-client";
import { useEffect, useState } from "preact/hooks";
import { Frame, findPage, type Link, type Page } from "shared/frame.tsx";
import { useSession } from "shared/hooks.ts";
import { fill, useLanguage } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { useRoute } from "shared/router.ts";
import { Title } from "shared/ui.tsx";
import { CONTROL_TOKEN, openOperatorSession } from "./control.ts";
import { Account } from "./pages/account.tsx";
import { BreakIt } from "./pages/break-it.tsx";
import { Erasures } from "./pages/erasures.tsx";
import { Keys } from "./pages/keys.tsx";
import { Moderation } from "./pages/moderation.tsx";
import { Overview } from "./pages/overview.tsx";
import { Queue, Queues } from "./pages/queues.tsx";
import { Reconciliation } from "./pages/reconciliation.tsx";
import { Sales } from "./pages/sales.tsx";
import { ServerKeys } from "./pages/server-keys.tsx";
import { Switches } from "./pages/switches.tsx";
import { type Action, Outcome, useAction } from "./parts.tsx";
import { OperatorSignIn } from "./sign-in.tsx";
import { t } from "./texts.ts";

const PAGES: [pattern: string, page: Page][] = [
  ["/", () => <Overview />],
  ["/queues", () => <Queues />],
  ["/queues/:name", ({ name = "" }) => <Queue name={name} />],
  ["/reconciliation", () => <Reconciliation />],
  ["/keys", () => <Keys />],
  ["/sales", (_, { query }) => <Sales state={query.get("state")} />],
  ["/switches", () => <Switches />],
  ["/moderation", () => <Moderation />],
  ["/erasures", () => <Erasures />],
  ["/server-keys", () => <ServerKeys />],
  ["/account", () => <Account />],
  ...(CONTROL_TOKEN === "" ? [] : [["/break-it", () => <BreakIt />] as [string, Page]]),
];

function listLinks(): Link[] {
  return [
    ["/", t.nav.overview, "pulse"],
    ["/queues", t.nav.queues, "queue"],
    ["/reconciliation", t.nav.reconciliation, "scales"],
    ["/keys", t.nav.keys, "key"],
    ["/sales", t.nav.sales, "tag"],
    ["/switches", t.nav.switches, "sliders"],
    ["/moderation", t.nav.moderation, "flag"],
    ["/erasures", t.nav.erasures, "eraser"],
    ["/server-keys", t.nav.serverKeys, "lock"],
    ...(CONTROL_TOKEN === "" ? [] : [["/break-it", t.nav.breakIt, "bolt"] as Link]),
    ["/account", t.account.title, "person"],
  ];
}

/** Whether a role may open a page; an admin, and a role that cannot be read, may open all. */
function mayOpen(role: string | null | undefined, path: string): boolean {
  if (path === "/account") return true;
  if (role === "moderator" || role === "operator") return (role === "moderator") === (path === "/moderation");
  return role !== "sales" || path === "/sales";
}

export function App() {
  const session = useSession();
  const route = useRoute();
  const role = useRole(session);
  const isRefused = role === "user";
  const isOperator = session !== null && role !== undefined && !isRefused;
  const language = useLanguage();
  const links = listLinks().filter(([path]) => mayOpen(role, path));
  const first = links[0]?.[0] ?? "/";
  const isElsewhere = isOperator && route.path === "/" && first !== "/";
  useEffect(() => {
    if (isElsewhere) location.replace(`#${first}`);
  }, [isElsewhere, first]);
  const leaving = useAction();
  // A page would read with a session that ends, or with one that may not.
  const isWaiting = leaving.isBusy || role === undefined || isElsewhere;
  return (
    <Frame
      name={t.name}
      icon="pulse"
      links={isOperator ? links : []}
      route={route}
      action={session !== null && role !== undefined && <SignOut name={session.user.nickname} action={leaving} />}
      of={`${language}${session?.user.id}${isRefused}${route.path}`}
    >
      {session === null ? (
        <OperatorSignIn>
          <OpenOperatorSession />
        </OperatorSignIn>
      ) : isWaiting ? null : isRefused ? (
        <NoOperator id={session.user.id} />
      ) : (
        findPage(PAGES, route)
      )}
    </Frame>
  );
}

/** Returns the role of a session; undefined until the user's role was read, null while it cannot be read. A user who
 * signs in again keeps the page, and what is typed into it, while the role is read again. */
function useRole(session: Session | null): string | null | undefined {
  const [known, setKnown] = useState<{ id: string; role: string | null }>();
  const token = session?.token;
  const id = session?.user.id;
  useEffect(() => {
    if (token === undefined || id === undefined) return;
    plaza.get("/users/me/sessions").then(
      ({ items }) => {
        const current = items.find((session) => session.current);
        setKnown({ id, role: current?.role ?? null });
      },
      () => setKnown({ id, role: null }), // the pages say what is wrong
    );
  }, [token, id]);
  return known !== undefined && known.id === id ? known.role : undefined;
}

function NoOperator({ id }: { id: string }) {
  return (
    <>
      <Title text={t.access.none} />
      <div class="note problem" role="alert">
        <p>
          <b>{t.access.who(id)}</b>
        </p>
        <p>{fill(t.access.how, { command: <code key="command">set-role</code> })}</p>
      </div>
      <OpenOperatorSession />
    </>
  );
}

/** The local stack signs in an operator without a phone. */
function OpenOperatorSession() {
  const action = useAction();
  if (CONTROL_TOKEN === "") return null;
  return (
    <section class="section narrow">
      <p class="fine">{t.access.local}</p>
      <button type="button" onClick={() => void action.run(async () => plaza.resume(await openOperatorSession()))}>
        {t.access.open}
      </button>
      <Outcome of={action} />
    </section>
  );
}

function SignOut({ name, action }: { name: string; action: Action }) {
  return (
    <div class="account">
      <p class="fine">{name}</p>
      <button type="button" class="small quiet" onClick={() => void action.run(() => plaza.signOut())}>
        {t.access.signOut}
      </button>
    </div>
  );
}
