/** The waitlists that the caller is on: positions and offers, which all pages show. */
import { ProblemError, type Schemas } from "plaza-client";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSession } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { ONCE, useRepeated } from "shared/repeated.ts";
import { say } from "shared/toast.tsx";
import { t } from "./texts.ts";

export type Position = Schemas["WaitlistResponse"];
type Positions = ReadonlyMap<string, Position>;

interface OwnSales {
  positions: Positions;
  /** Shows a position that the caller took, or with null gave up. */
  set: (voucherId: string, position: Position | null) => void;
  /** Reads the positions more often while it is shown; returns a function that ends this. */
  watch: () => () => void;
}

const WATCHED_MS = 4_000;
const WAITING_MS = 15_000;
const IDLE_MS = 300_000;
/** A user waits for few sales; the list has one page here. */
const MAX_POSITIONS = 100;

const Context = createContext<OwnSales>({
  positions: new Map(),
  set: () => undefined,
  watch: () => () => undefined,
});

export function useOwnSales(): OwnSales {
  return useContext(Context);
}

export function OwnSalesOf({ children }: { children: ComponentChildren }) {
  const userId = useSession()?.user.id;
  const [positions, setPositions] = useState<Positions>(new Map());
  const [watchers, setWatchers] = useState(0);
  useEffect(() => setPositions(new Map()), [userId]);
  const own = useMemo<OwnSales>(
    () => ({
      positions,
      set: (voucherId, position) => setPositions((before) => change(before, voucherId, position)),
      watch: () => {
        setWatchers((count) => count + 1);
        return () => setWatchers((count) => count - 1);
      },
    }),
    [positions],
  );
  const everyMs = positions.size === 0 ? IDLE_MS : watchers > 0 ? WATCHED_MS : WAITING_MS;
  return (
    <Context.Provider value={own}>
      {userId !== undefined && <Reader key={userId} positions={positions} set={setPositions} everyMs={everyMs} />}
      {children}
    </Context.Provider>
  );
}

interface ReaderProps {
  positions: Positions;
  set: (positions: Positions) => void;
  everyMs: number;
}

/** Reads the positions again and again; what the caller took or gave up meanwhile is newer. */
function Reader({ positions, set, everyMs }: ReaderProps) {
  const isRead = useRef(false);
  const latest = useRef(positions);
  latest.current = positions;
  useRepeated(async (signal) => {
    const before = latest.current;
    const read = await readPositions(isRead.current ? [...before.keys()] : [], signal);
    isRead.current = true;
    const now = latest.current;
    const after = new Map(read.map((position) => [position.voucher_id, position]));
    for (const [id, position] of now) {
      if (before.get(id) !== position) after.set(id, position);
      else if (position.status === "offered" && !after.has(id)) say(t.offer.over);
    }
    for (const id of before.keys()) if (!now.has(id)) after.delete(id);
    set(after);
  }, everyMs);
  return null;
}

/** Returns the caller's positions: of a single known one from Redis alone, otherwise the list. */
async function readPositions(known: string[], signal: AbortSignal): Promise<Position[]> {
  const [voucher_id, another] = known;
  if (voucher_id === undefined || another !== undefined) {
    return (await plaza.get("/users/me/waitlists", { query: { limit: MAX_POSITIONS }, signal, ...ONCE })).items;
  }
  try {
    return [await plaza.get("/vouchers/{voucher_id}/waitlist/me", { path: { voucher_id }, signal, ...ONCE })];
  } catch (error) {
    if (error instanceof ProblemError && [404, 409, 410].includes(error.status)) return []; // it has ended
    throw error;
  }
}

function change(positions: Positions, voucherId: string, position: Position | null): Positions {
  const changed = new Map(positions);
  if (position === null) changed.delete(voucherId);
  else changed.set(voucherId, position);
  return changed;
}
