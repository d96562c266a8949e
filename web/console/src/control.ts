/** What only a local stack has: its page has the token that these requests need. */
import { NetworkError, ProblemError, type Session } from "plaza-client";
import { t } from "./texts.ts";

/** Empty where nothing may be broken. */
export const CONTROL_TOKEN = document.querySelector<HTMLMetaElement>('meta[name="plaza-control"]')?.content ?? "";

export type ServerState = "up" | "down" | "external";

export interface Crowd {
  running: boolean;
  requests: number;
  done: number;
  repeated: number;
  provisional: number;
  retried: number;
  failed: number;
  /** Why it ended early; empty otherwise. */
  ended: string;
}

export interface ControlState {
  redis: ServerState;
  mysql: ServerState;
  copies: number;
  killed: number;
  crowd: Crowd | null;
}

export interface AuditReport {
  clean: boolean;
  /** False while changes are in transit: what differs may be one of them. */
  quiet: boolean;
  targets: number;
  drift: number;
  others: number;
  pending: number;
  queued: number;
  /** Queues with messages; a message that failed is tried again after at most `retry_s`. */
  queues?: { name: string; messages: number; retry_s: number }[];
  dead: number;
  differences: string[];
}

export type ControlAction =
  | "start-crowd"
  | "stop-redis"
  | "start-redis"
  | "stop-mysql"
  | "start-mysql"
  | "kill-consumers"
  | "double-deliveries"
  | "single-deliveries";

export const readControl = (signal: AbortSignal) => send<ControlState>("GET", "control", undefined, signal);
export const runAction = (action: ControlAction) => send<ControlState>("POST", "control", { action });
/** `wait`: for a moment, until nothing is in transit. */
export const runAudit = (wait: boolean) => send<AuditReport>("POST", "audit", { wait });
export const openOperatorSession = () => send<Session>("POST", "operator");

async function send<T>(method: string, name: string, body?: object, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    response = await fetch(`/local/${name}`, {
      method,
      headers: { "x-plaza-control": CONTROL_TOKEN },
      signal: signal ?? null,
      ...(body && { body: JSON.stringify(body) }),
    });
  } catch (error) {
    throw new NetworkError(t.breakIt.silent, undefined, error);
  }
  const answer: unknown = await response.json();
  if (!response.ok) throw new ProblemError(response.status, { title: t.breakIt.refuses, ...(answer as object) });
  return answer as T;
}
