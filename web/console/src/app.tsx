import { useEffect, useState } from "preact/hooks";
import { Frame, findPage, type Link, type Page } from "shared/frame.tsx";
import { useSession } from "shared/hooks.ts";
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
import { Switches } from "./pages/switches.tsx";
import { type Action, Outcome, useAction } from "./parts.tsx";
import { OperatorSignIn } from "./sign-in.tsx";

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
  ["/account", () => <Account />],
  ...(CONTROL_TOKEN === "" ? [] : [["/break-it", () => <BreakIt />] as [string, Page]]),
];
const LINKS: Link[] = [
  ["/", "Overview", "pulse"],
  ["/queues", "Queues", "queue"],
  ["/reconciliation", "Reconciliation", "scales"],
  ["/keys", "Keys", "key"],
  ["/sales", "Flash sales", "tag"],
  ["/switches", "Switches", "sliders"],
  ["/moderation", "Moderation", "flag"],
  ["/erasures", "Erasures", "eraser"],
  ...(CONTROL_TOKEN === "" ? [] : [["/break-it", "Break it", "bolt"] as Link]),
];

/** What a role may open besides its account; an admin, and a role that cannot be read, may open all. */
const OPENS: Record<string, string[]> = {
  moderator: ["/moderation"],
  sales: ["/sales"],
  operator: LINKS.map(([path]) => path).filter((path) => path !== "/moderation"),
};

export function App() {
  const session = useSession();
  const route = useRoute();
  const role = useRole(session?.token);
  const isRefused = role === "user";
  const isOperator = session !== null && role !== undefined && !isRefused;
  const opens = OPENS[role ?? ""];
  const links = opens === undefined ? LINKS : LINKS.filter(([path]) => opens.includes(path));
  const [first] = links;
  useEffect(() => {
    if (isOperator && route.path === "/" && first !== undefined && first[0] !== "/") location.replace(`#${first[0]}`);
  }, [isOperator, route.path, first?.[0]]);
  const leaving = useAction();
  // A page would read with a session that ends, or with one that may not.
  const isWaiting = leaving.isBusy || role === undefined;
  return (
    <Frame
      name="Console"
      icon="pulse"
      links={isOperator ? links : []}
      route={route}
      action={session !== null && <SignOut name={session.user.nickname} action={leaving} />}
      of={`${session?.token}${isRefused}${route.path}`}
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

/** Returns the role of the session of `token`; undefined until it was read, null while it cannot be read. */
function useRole(token: string | undefined): string | null | undefined {
  const [known, setKnown] = useState<{ token: string; role: string | null }>();
  useEffect(() => {
    if (token === undefined) return;
    plaza.get("/users/me/sessions").then(
      ({ items }) => {
        const current = items.find((session) => session.current);
        setKnown({ token, role: current?.role ?? null });
      },
      () => setKnown({ token, role: null }), // the pages say what is wrong
    );
  }, [token]);
  return known !== undefined && known.token === token ? known.role : undefined;
}

function NoOperator({ id }: { id: string }) {
  return (
    <>
      <Title text="No access" />
      <div class="note problem" role="alert">
        <p>
          <b>You are user {id}, and no operator.</b>
        </p>
        <p>
          Operators have a role, which <code>set-role</code> gives, and sign in with a passkey. A new role is valid
          within a minute.
        </p>
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
      <p class="fine">This is a local stack:</p>
      <button type="button" onClick={() => void action.run(async () => plaza.resume(await openOperatorSession()))}>
        Sign in as an operator
      </button>
      <Outcome of={action} />
    </section>
  );
}

function SignOut({ name, action }: { name: string; action: Action }) {
  return (
    <div class="account">
      <a class="fine" href="#/account">
        {name}
      </a>
      <button type="button" class="small quiet" onClick={() => void action.run(() => plaza.signOut())}>
        Sign out
      </button>
    </div>
  );
}
