/** Lines over time; their last and highest values are beside them as text. */
import { formatNumber, formatTime } from "shared/language.ts";
import { t } from "./texts.ts";

export interface Line {
  label: string;
  values: (number | null)[];
}

interface PlotProps {
  title: string;
  /** Seconds since 1970, one for each value. */
  times: number[];
  lines: Line[];
}

const MAX_SHORT_S = 600;
const DAY_S = 86_400;
const TIME_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, DAY_S, 7 * DAY_S];
const MAX_TIMES = 4;
/** How often the usual time between two values makes a gap. */
const MAX_GAPS = 4;
const MAX_VALUES = 4;

export function Plot({ title, times, lines }: PlotProps) {
  const { from, to } = { from: times[0] ?? 0, to: times.at(-1) ?? 0 };
  const top = Math.max(1, (highest(lines.flatMap(({ values }) => values)) ?? 0) * 1.1);
  const x = (time: number) => (100 * (time - from)) / Math.max(1, to - from);
  const y = (value: number) => 100 - (100 * value) / top;
  return (
    <figure class="card plot">
      <figcaption>
        <b>{title}</b>
        <ul>
          {lines.map(({ label, values }, index) => (
            <li key={label}>
              <i class={`color-${index}`} aria-hidden="true" />
              {label} {formatNumber(newest(values))} <small>{t.overview.highest(formatNumber(highest(values)))}</small>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="lines" aria-hidden="true">
        {steps(0, top, nextStep(top / MAX_VALUES)).map((value) => (
          <span key={value} class="value" style={{ top: `${y(value)}%` }}>
            {formatNumber(value)}
          </span>
        ))}
        <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
          {lines.map(({ label, values }, index) => (
            <path key={label} class={`color-${index}`} d={draw(times, values, x, y)} />
          ))}
        </svg>
        {steps(from, to, timeStep(to - from)).map((time) => (
          <span key={time} class="time" style={{ insetInlineStart: `${x(time)}%` }}>
            {formatAt(time, to - from)}
          </span>
        ))}
      </div>
    </figure>
  );
}

/** Returns the path of a line, with a gap where there is no value, and where nothing was read for a while. */
function draw(
  times: number[],
  values: (number | null)[],
  x: (time: number) => number,
  y: (value: number) => number,
): string {
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time));
  const usual = gaps.toSorted((a, b) => a - b)[gaps.length >> 1] ?? 0;
  let path = "";
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    const point = `${x(times[index] ?? 0).toFixed(2)} ${y(value).toFixed(2)}`;
    const isFirst = (values[index - 1] ?? null) === null || (gaps[index - 1] ?? 0) > MAX_GAPS * usual;
    path += isFirst ? `M${point}h0` : `L${point}`; // a point of its own is a dot
  }
  return path;
}

/** Returns the multiples of `step` from `from` to `to`. */
function steps(from: number, to: number, step: number): number[] {
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, index) => (first + index) * step);
}

/** Returns the next of 1, 2, 5, 10, 20, 50, … */
function nextStep(least: number): number {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, least))));
  return power * ([1, 2, 5].find((first) => first * power >= least) ?? 10);
}

function timeStep(spanS: number): number {
  return TIME_STEPS_S.find((step) => spanS / step <= MAX_TIMES) ?? 7 * DAY_S;
}

function formatAt(timeS: number, spanS: number): string {
  const at = new Date(timeS * 1000);
  if (spanS > DAY_S) return formatTime(at, { day: "numeric", month: "short", timeZone: "UTC" });
  const second = spanS > MAX_SHORT_S ? {} : ({ second: "2-digit" } as const);
  return formatTime(at, { hour: "2-digit", minute: "2-digit", ...second });
}

/** The last sample: the current minute may have none yet. */
function newest(values: (number | null)[]): number | null {
  return values.findLast((value) => value !== null) ?? null;
}

function highest(values: (number | null)[]): number | null {
  return values.reduce<number | null>(
    (most, value) => (value === null || (most !== null && most > value) ? most : value),
    null,
  );
}
