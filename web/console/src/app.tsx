import { ProblemError } from "plaza-client";
import { useEffect, useState } from "preact/hooks";
import { Frame, findPage, type Link, type Page } from "shared/frame.tsx";
import { useSession } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { useRoute } from "shared/router.ts";
import { SignIn } from "shared/sign-in.tsx";
import { Title } from "shared/ui.tsx";
import { CONTROL_TOKEN, openOperatorSession } from "./control.ts";
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

export function App() {
  const session = useSession();
  const route = useRoute();
  const isRefused = useRefusal(session?.token);
  const isOperator = session !== null && !isRefused;
  const leaving = useAction();
  return (
    <Frame
      name="Console"
      icon="pulse"
      links={isOperator ? LINKS : []}
      route={route}
      action={session !== null && <SignOut name={session.user.nickname} action={leaving} />}
      of={`${session?.token}${isRefused}${route.path}`}
    >
      {session === null ? (
        <SignIn>
          <OpenOperatorSession />
        </SignIn>
      ) : leaving.isBusy ? null /* a page would go on reading with the ended session */ : isRefused ? (
        <NoOperator id={session.user.id} />
      ) : (
        findPage(PAGES, route)
      )}
    </Frame>
  );
}

/** Returns whether the API refuses the session of `token`, because its user is no operator. */
function useRefusal(token: string | undefined): boolean {
  const [refused, setRefused] = useState<string>();
  useEffect(() => {
    if (token === undefined) return;
    plaza.get("/ops/health").catch((error: unknown) => {
      if (error instanceof ProblemError && error.status === 403) setRefused(token);
    });
  }, [token]);
  return token !== undefined && refused === token;
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
          Operators have the role <code>admin</code> in the table <code>user</code>. A new role is valid within a
          minute.
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
      <span class="fine">{name}</span>
      <button type="button" class="small quiet" onClick={() => void action.run(() => plaza.signOut())}>
        Sign out
      </button>
    </div>
  );
}
