/** Buttons for likes, collects and follows. They change at once; the client confirms them. */

import type { Collectable, Followable, Likeable } from "plaza-client";
import { ProblemError, type Reaction, type ReactionState } from "plaza-client";
import { useEffect } from "preact/hooks";
import { useReaction, useSession } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { sayRefusal } from "shared/toast.tsx";
import { Count, Icon, type IconName, Total } from "shared/ui.tsx";

/** Shows why a reaction was reverted; for the end of a session the user is asked to sign in. */
function useRefusal({ error }: ReactionState): void {
  useEffect(() => {
    if (error === undefined || (error instanceof ProblemError && error.slug === "unauthenticated")) return;
    sayRefusal(error);
  }, [error]);
}

/** Changes the reaction, after a sign-in where there is no session. `make` returns it for the session. */
function toggle(make: () => Reaction): void {
  const { active } = make().state;
  withSession(() => make().set(!active)).catch(() => undefined); // `useRefusal` reports it
}

function ReactionButton(props: { label: string; icon: IconName; make: () => Reaction; of: object }) {
  const [state] = useReaction(props.make, [props.of]);
  useRefusal(state);
  return (
    <button
      type="button"
      class={`reaction ${props.icon}`}
      aria-pressed={state.active}
      onClick={() => toggle(props.make)}
    >
      <Icon name={props.icon} />
      <span class="hidden">{props.label}</span>
      <Count of={state.total} />
    </button>
  );
}

export function LikeButton({ type, target }: { type: "post" | "comment" | "review"; target: Likeable }) {
  return <ReactionButton label="Like" icon="heart" make={() => plaza.like(type, target)} of={target} />;
}

export function CollectButton({ post }: { post: Collectable }) {
  return <ReactionButton label="Collect" icon="bookmark" make={() => plaza.collect(post)} of={post} />;
}

export function FollowButton({ user, name }: { user: Followable; name: string }) {
  const session = useSession();
  const make = () => plaza.follow(user);
  const [state] = useReaction(make, [user]);
  useRefusal(state);
  if (session?.user.id === user.id) return null;
  return (
    <button
      type="button"
      class={state.active ? "follow small" : "follow small primary"}
      aria-pressed={state.active}
      onClick={() => toggle(make)}
    >
      {state.active ? "Following" : "Follow"}
      <span class="hidden"> {name}</span>
    </button>
  );
}

/** The followers of a user, which the caller's own follow changes at once. */
export function Followers({ user }: { user: Followable }) {
  const [{ total }] = useReaction(() => plaza.follow(user), [user]);
  return <Total of={total} singular="follower" plural="followers" />;
}
