/** Users as lists show them. */
import type { ComponentChildren } from "preact";
import { pictureUrl } from "./pictures.ts";
import type { UserCard } from "./types.ts";

export function Avatar({ user, large = false }: { user: UserCard; large?: boolean }) {
  const hue = Number(BigInt(user.id) % 360n);
  return (
    <span class={large ? "avatar large" : "avatar"} style={{ "--hue": hue }} aria-hidden="true">
      {user.avatar ? <img src={pictureUrl(user.avatar)} alt="" loading="lazy" /> : [...user.nickname][0]?.toUpperCase()}
    </span>
  );
}

export function UserLink({ user, note }: { user: UserCard; note?: ComponentChildren }) {
  return (
    <a class="user" href={`#/users/${user.id}`}>
      <Avatar user={user} />
      <span>
        <b>{user.nickname}</b>
        {note !== undefined && <small>{note}</small>}
      </span>
    </a>
  );
}
