/** Whose pages are shown, and what is done again once its user has signed in. */
import { ProblemError } from "plaza-client";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { plaza } from "./plaza.ts";

/** The user did not sign in, so nothing was done. */
export class NotSignedIn extends Error {}

let userId = plaza.session?.user.id ?? null;
let isOver = false;
/** How often the pages became the pages of another user, or of none. */
let readers = 0;
const leaving = new Set<() => void>();
const following = new Set<() => void>();
let ask: (isAgain: boolean) => Promise<boolean> = async () => false;

plaza.onSession((session, change) => {
  isOver = change === "ended";
  show(isOver ? userId : (session?.user.id ?? null));
});

/** Shows the pages of a user. What an anonymous reader saw stays: a sign-in changes no page. */
function show(next: string | null): void {
  const isOther = userId !== null && next !== userId;
  userId = next;
  if (isOther) {
    readers += 1;
    for (const listener of leaving) listener();
  }
  for (const listener of following) listener();
}

/** The user whose pages are shown, also after the session has ended; null for an anonymous reader. */
export function shownUser(): string | null {
  return userId;
}

/** Calls `listener` when what was shown and written is no longer the user's: after a sign-out. */
export function onLeave(listener: () => void): void {
  leaving.add(listener);
}

/** Whether the API has ended the session, and its user has not signed in again. */
export function hasEnded(): boolean {
  return isOver;
}

/** Says that the user stays signed out after the session has ended. */
export function stayOut(): void {
  isOver = false;
  show(null);
}

/** Renders again when the reader changes or the session ends. Returns a number for each reader. */
export function useReader(): number {
  const [, render] = useState(0);
  useLayoutEffect(() => {
    const follow = () => render((count) => count + 1);
    following.add(follow);
    return () => void following.delete(follow);
  }, []);
  return readers;
}

/** Calls `listener` after a sign-in, and after the end of a session: what was read may differ. */
export function useSessionChange(listener: (isSignedIn: boolean) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(
    () =>
      plaza.onSession((session, change) => {
        if (change !== "signed-out") latest.current(session !== null);
      }),
    [],
  );
}

/** Sets how a user is asked to sign in, `isAgain` with a session that is too old. `how` returns whether the user did. */
export function setAsking(how: (isAgain: boolean) => Promise<boolean>): void {
  ask = how;
}

async function requireSession(isAgain = false): Promise<void> {
  const before = userId;
  const isSignedIn = await ask(isAgain);
  // What one user began, another one does not finish.
  if (!isSignedIn || (before !== null && before !== userId)) throw new NotSignedIn();
}

/**
 * Does what needs a session. Without one, when it has ended, and where the sign-in is too old, it asks the user to
 * sign in first; throws NotSignedIn if the user does not.
 */
export async function withSession<T>(act: () => Promise<T>): Promise<T> {
  if (plaza.session === null) await requireSession();
  try {
    return await act();
  } catch (error) {
    const slug = error instanceof ProblemError ? error.slug : "";
    if (slug !== "unauthenticated" && slug !== "sign-in-too-old") throw error;
    await requireSession(slug === "sign-in-too-old");
    return act();
  }
}
