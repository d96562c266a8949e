import type { Schemas } from "plaza-client";
import { useState } from "preact/hooks";
import { useRead, useSession } from "shared/hooks.ts";
import { fill, formatNumber, formatTime, weekdays } from "shared/language.ts";
import { plaza } from "shared/plaza.ts";
import { withSession } from "shared/session.ts";
import { say, sayRefusal } from "shared/toast.tsx";
import { Count, Icon, Problem, Skeleton, Title, Total } from "shared/ui.tsx";
import { t } from "../texts.ts";

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
      say(answer.exact ? t.checkIn.done : t.checkIn.provisional);
    } catch (reason) {
      sayRefusal(reason);
    }
  };
  return (
    <>
      <Title text={t.checkIn.title} />
      <Problem error={error} retry={reload} />
      {shown === undefined && error === undefined && <Skeleton rows={1} />}
      {shown !== undefined && (
        <>
          <section class="streak card">
            <p>
              <Total of={shown.streak} word={t.total.dayInARow} />
            </p>
            <p>
              {fill(t.checkIn.thisMonth, {
                total: (
                  <b key="total">
                    <Count of={shown.total} />
                  </b>
                ),
              })}
            </p>
            {month === today?.slice(0, 7) && (
              <button type="button" class="primary" disabled={isDone === true} onClick={() => void checkIn()}>
                {isDone ? t.checkIn.today : t.checkIn.now}
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
  const title = formatTime(`${month}-15T12:00:00Z`, { month: "long", year: "numeric", timeZone: "UTC" });
  return (
    <section class="card month">
      <header>
        <a href={`#/check-ins?month=${shift(month, -1)}`} aria-label={t.checkIn.before}>
          <Icon name="back" />
        </a>
        <h2 aria-live="polite">{title}</h2>
        <a href={`#/check-ins?month=${shift(month, 1)}`} aria-label={t.checkIn.after}>
          <Icon name="next" />
        </a>
      </header>
      <table>
        <caption class="hidden">{t.checkIn.of(title)}</caption>
        <thead>
          <tr>
            {weekdays().map(({ long, short }) => (
              <th key={long} scope="col">
                <abbr title={long}>{short}</abbr>
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
                    {day !== null && <span>{formatNumber(day)}</span>}
                    {isChecked && <span class="hidden">{t.checkIn.checked}</span>}
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
