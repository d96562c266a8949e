/** Buttons for likes, collects, follows and a deployment's kinds. They change at once; the client confirms them. */

import type { Collectable, Followable, Likeable, Reactable } from "plaza-client";
import { ProblemError, type Reaction, type ReactionState } from "plaza-client";
import { useEffect, useRef, useState } from "preact/hooks";
import { useReaction, useSession, useWhileShown } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { sayRefusal } from "shared/toast.tsx";
import { Count, Icon, type IconName, Total } from "shared/ui.tsx";
import { t } from "./texts.ts";

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

type TextType = "post" | "comment" | "review";

/** Kinds that have a button of their own. */
const NAMED_KINDS = ["like", "collect", "follow"];

interface ReactionProps {
  label: string;
  /** The tooltip; with one the label is visible. */
  title?: string;
  icon: IconName;
  make: () => Reaction;
  of: object;
}

function ReactionButton(props: ReactionProps) {
  const [state, reaction] = useReaction(props.make, [props.of]);
  const button = useRef<HTMLButtonElement>(null);
  useRefusal(state);
  useWhileShown(button, () => plaza.live(reaction), [reaction]);
  return (
    <button
      ref={button}
      type="button"
      class={`reaction ${props.icon}`}
      title={props.title}
      aria-pressed={state.active}
      onClick={() => toggle(props.make)}
    >
      <Icon name={props.icon} />
      <span class={props.title === undefined ? "hidden" : undefined}>{props.label}</span>
      <Count of={state.total} />
    </button>
  );
}

export function LikeButton({ type, target }: { type: TextType; target: Likeable }) {
  return <ReactionButton label={t.likes} icon="heart" make={() => plaza.like(type, target)} of={target} />;
}

export function CollectButton({ type, target }: { type: TextType; target: Collectable }) {
  return <ReactionButton label={t.collects} icon="bookmark" make={() => plaza.collect(type, target)} of={target} />;
}

/** A button for each kind that the deployment adds; an older API sends no kinds. */
export function KindButtons({ type, target }: { type: TextType; target: Omit<Reactable, "type"> }) {
  const added = Object.keys(target.reactions ?? {}).filter((kind) => !NAMED_KINDS.includes(kind));
  return (
    <>
      {added.map((kind) => (
        <ReactionButton
          key={kind}
          label={capitalize(kind)}
          title={t.reaction(capitalize(kind))}
          icon="tag"
          make={() => plaza.react({ ...target, type }, kind)}
          of={target}
        />
      ))}
    </>
  );
}

/** Returns the name of a kind as a label: thumbs_up is Thumbs up. */
function capitalize(kind: string): string {
  return kind.charAt(0).toUpperCase() + kind.slice(1).replace(/_/g, " ");
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
      {state.active ? t.following : t.follow}
      <span class="hidden"> {name}</span>
    </button>
  );
}

/** The followers of a user, which the caller's own follow changes at once. */
export function Followers({ user }: { user: Followable }) {
  const [{ total }, reaction] = useReaction(() => plaza.follow(user), [user]);
  const shown = useRef<HTMLSpanElement>(null);
  useWhileShown(shown, () => plaza.live(reaction), [reaction]);
  return (
    <span ref={shown}>
      <Total of={total} word={t.total.follower} />
    </span>
  );
}

/** The number of comments of a post, as it was read until a newer one is reported. */
export function CommentCount({ post }: { post: { id: string; comments: number } }) {
  const [reported, setReported] = useState<number>();
  const shown = useRef<HTMLSpanElement>(null);
  useEffect(() => setReported(undefined), [post]);
  useWhileShown(shown, () => plaza.live({ type: "post", id: post.id }, ({ comments }) => setReported(comments)), [
    post,
  ]);
  return (
    <span ref={shown}>
      <Count of={reported ?? post.comments} />
    </span>
  );
}
