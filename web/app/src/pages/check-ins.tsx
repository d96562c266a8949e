import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useRead, useSession } from "shared/hooks.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { Icon, Problem, Skeleton, Title, Total } from "shared/ui.tsx";

const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/** Returns the month that is `by` months after `month` (`2026-11`). */
function shift(month: string, by: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1 + by, 1)).toISOString().slice(0, 7);
}

/** Returns the days of a month in weeks from Monday to Sunday; null outside of the month. */
export function weeksOf(month: string): (number | null)[][] {
  const [year = 0, number = 1] = month.split("-").map(Number);
  const first = (new Date(Date.UTC(year, number - 1, 1)).getUTCDay() + 6) % 7;
  const length = new Date(Date.UTC(year, number, 0)).getUTCDate();
  const cells = Array.from({ length: Math.ceil((first + length) / 7) * 7 }, (_, cell) => {
    const day = cell - first + 1;
    return day >= 1 && day <= length ? day : null;
  });
  return Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7));
}

export function CheckIns({ month: asked }: { month: string | null }) {
  const session = useSession();
  const now = new Date().toISOString().slice(0, 7);
  const month = asked !== null && /^\d{4}-\d{2}$/.test(asked) ? asked : now;
  const [changed, setChanged] = useState<Schemas["CheckInsResponse"]>();
  const { data, error, reload } = useRead(`check-ins ${session?.user.id} ${month}`, (signal) =>
    plaza.get("/checkins", { query: { month }, signal }),
  );
  const today = (changed ?? data)?.today;
  const shown = changed !== undefined && changed.month === month ? changed : data;
  const isDone = shown !== undefined && today?.startsWith(month) && shown.days?.includes(Number(today.slice(8)));
  const checkIn = async () => {
    try {
      const answer = await withSession(() => plaza.put("/checkins/today"));
      setChanged(answer);
      say(answer.exact ? "Checked in. See you tomorrow!" : "Checked in; it is counted in a moment.");
    } catch (reason) {
      sayRefusal(reason);
    }
  };
  return (
    <>
      <Title text="Check in" />
      <Problem error={error} retry={reload} />
      {shown === undefined && error === undefined && <Skeleton rows={1} />}
      {shown !== undefined && (
        <>
          <section class="streak card">
            <p>
              <Total of={shown.streak} singular="day in a row" plural="days in a row" />
            </p>
            <p>
              <b>{shown.total ?? "–"}</b> this month
            </p>
            {month === today?.slice(0, 7) && (
              <button type="button" class="primary" disabled={isDone === true} onClick={() => void checkIn()}>
                {isDone ? "Checked in today" : "Check in now"}
              </button>
            )}
          </section>
          <Calendar month={month} days={new Set(shown.days)} today={today ?? ""} />
        </>
      )}
    </>
  );
}

function Calendar({ month, days, today }: { month: string; days: Set<number>; today: string }) {
  const title = new Date(`${month}-15T12:00:00Z`).toLocaleDateString(undefined, { month: "long", year: "numeric" });
  return (
    <section class="card month">
      <header>
        <a href={`#/check-ins?month=${shift(month, -1)}`} aria-label="Month before">
          <Icon name="back" />
        </a>
        <h2 aria-live="polite">{title}</h2>
        <a href={`#/check-ins?month=${shift(month, 1)}`} aria-label="Month after">
          <Icon name="next" />
        </a>
      </header>
      <table>
        <caption class="hidden">Check-ins of {title}</caption>
        <thead>
          <tr>
            {WEEKDAYS.map((name) => (
              <th key={name} scope="col">
                <abbr title={name}>{name.slice(0, 2)}</abbr>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeksOf(month).map((week, row) => (
            <tr key={row}>
              {week.map((day, column) => {
                const isToday = day !== null && today === `${month}-${String(day).padStart(2, "0")}`;
                const isChecked = day !== null && days.has(day);
                return (
                  <td key={column} class={[isChecked && "checked", isToday && "today"].filter(Boolean).join(" ")}>
                    {day !== null && <span>{day}</span>}
                    {isChecked && <span class="hidden"> checked in</span>}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
