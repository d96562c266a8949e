/** What the sentence of a notification is made of; each catalogue has the sentence. */
import type { Notification } from "plaza-client";

export interface Sentence {
  kind: Notification["kind"];
  subject: Notification["subject"]["type"];
  /** The beginning of the text; empty for a follow, and for a text without one. */
  title: string;
  names: string[];
  /** How many there are besides `names`. */
  others: number;
  total: number;
}

export function analyse({ kind, subject, total, actors }: Notification): Sentence {
  const names = actors.map((actor) => actor.nickname);
  const others = Math.max(0, total - names.length);
  return { kind, subject: subject.type, title: subject.text ?? "", names, others, total };
}
