/** Lines over time, by uPlot; their last and highest values are beside them as text. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { formatNumber } from "./parts.tsx";

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

const HEIGHT = 140;
const MAX_SHORT_S = 600;
const DAY_S = 86_400;
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, DAY_S, 7 * DAY_S];
const STEPS = [1, 2, 5]
  .flatMap((first) => Array.from({ length: 10 }, (_, zeros) => first * 10 ** zeros))
  .sort((a, b) => a - b);
const MINUTE = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const SECOND = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DARK = matchMedia("(prefers-color-scheme: dark)");

/** Returns the value of a CSS color, which the scheme decides. */
function colorOf(element: Element, index: number | "line" | "faint"): string {
  const probe = element.querySelector<HTMLElement>(`.color-${index}`);
  return probe === null ? "" : getComputedStyle(probe).color;
}

export function Plot({ title, times, lines }: PlotProps) {
  const figure = useRef<HTMLElement>(null);
  const canvas = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const data = [times, ...lines.map((line) => line.values)] as uPlot.AlignedData;
  const shown = useRef(data);
  shown.current = data;
  const labels = lines.map((line) => line.label).join();
  useEffect(() => {
    const [outer, inner] = [figure.current, canvas.current];
    if (outer === null || inner === null) return;
    const axis: uPlot.Axis = {
      stroke: () => colorOf(outer, "faint"),
      grid: { stroke: () => colorOf(outer, "line"), width: 1 },
      ticks: { show: false },
    };
    const formatTimes = ({ scales }: uPlot, times: number[]) => {
      const { min = 0, max = 0 } = scales.x ?? {};
      const spanS = (max ?? 0) - (min ?? 0);
      const format = spanS > DAY_S ? DAY : spanS > MAX_SHORT_S ? MINUTE : SECOND;
      return times.map((time) => format.format(time * 1000));
    };
    const made = new uPlot(
      {
        width: inner.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { show: false },
        padding: [8, 8, 0, 0],
        scales: { y: { range: (_, least, most) => [Math.min(0, least ?? 0), Math.max(1, (most ?? 0) * 1.1)] } },
        axes: [
          { ...axis, size: 28, space: 90, incrs: STEPS_S, values: formatTimes },
          { ...axis, size: 44, incrs: STEPS },
        ],
        series: [
          {},
          ...labels.split(",").map((label, index) => ({
            label,
            stroke: () => colorOf(outer, index),
            width: 2,
            points: { show: false },
          })),
        ],
      },
      shown.current,
      inner,
    );
    plot.current = made;
    const fit = new ResizeObserver(() => made.setSize({ width: inner.clientWidth, height: HEIGHT }));
    fit.observe(inner);
    const recolor = () => made.redraw();
    DARK.addEventListener("change", recolor);
    return () => {
      fit.disconnect();
      DARK.removeEventListener("change", recolor);
      made.destroy();
    };
  }, [labels]);
  useEffect(() => plot.current?.setData(shown.current), [times.length, times.at(-1), labels]);
  return (
    <figure class="card plot" ref={figure}>
      <figcaption>
        <b>{title}</b>
        <ul>
          {lines.map(({ label, values }, index) => (
            <li key={label}>
              <i class={`color-${index}`} aria-hidden="true" />
              {label} {formatNumber(newest(values))} <small>highest {formatNumber(highest(values))}</small>
            </li>
          ))}
        </ul>
      </figcaption>
      <i class="color-line" aria-hidden="true" />
      <i class="color-faint" aria-hidden="true" />
      <div ref={canvas} aria-hidden="true" />
    </figure>
  );
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
