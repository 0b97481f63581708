import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { moment, number } from "./ui";

// Line is a curve, with a band from low to high where these are given.
export interface Line {
  label: string;
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  dashed?: boolean;
}

interface Props {
  label: string; // what it shows, for those who cannot see it
  times: number[]; // seconds since 1970, or counts
  lines: Line[];
  height?: number;
  range?: [number, number]; // shown of the axis; what the times cover by default
  counts?: boolean; // the times are numbers of something
  marks?: number[]; // a dashed line is at each
  format?: (value: number) => string; // of the lines' values
  at?: (time: number) => string; // of times, in place of dates or numbers
  top?: number; // the scale reaches at least this
  curved?: boolean; // the lines are smooth
}

const right = 12, bottom = 22, above = 8;

// Chart draws lines over times or counts, with a scale on both axes. Below are the values at the pointer, or where the arrow
// keys are.
export function Chart(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(600);
  const [hover, setHover] = useState<number>();
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setWidth(Math.max(box.current?.clientWidth ?? 0, 160)));
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const height = props.height ?? 220;
  const { times, lines } = props;
  const [from, to] = props.range ?? [times[0] ?? 0, times[times.length - 1] ?? 1];
  const given = lines.flatMap((l) => [l.values, l.low ?? [], l.high ?? []]).flat().filter((v): v is number => v !== null && Number.isFinite(v));
  const least = Math.min(0, ...given), most = Math.max(props.top ?? -Infinity, 0, ...given);
  const ys = ticks(least, most > least ? most : 1, 4); // a line of zeros has a scale, too
  const [low, high] = [ys[0]!, ys[ys.length - 1]!];
  const write = props.format ?? ((v: number) => number(v, { maximumSignificantDigits: 3 }));
  const left = Math.min(Math.max(56, 12 + 6.8 * Math.max(...ys.map((v) => write(v).length))), width / 3); // room for amounts such as CHF 1,500
  const x = (t: number) => left + ((t - from) / Math.max(to - from, 1e-9)) * (width - left - right);
  const y = (v: number) => height - bottom - ((v - low) / (high - low || 1)) * (height - bottom - above);
  let xs: number[] = [], step = 1; // of times
  for (let n = Math.max(2, Math.floor(width / (props.counts ? 110 : 60))); xs.length < 2 && n < 40; n++) { // one label is no scale
    step = steps.find((s) => (to - from) / s <= n) ?? 31_536_000;
    xs = props.counts ? ticks(from, to, n).filter((t) => t >= from - 1e-9 && t <= to + 1e-9) : instants(from, to, step);
  }
  const writeX = props.at ?? (props.counts ? (t: number) => number(t, { maximumSignificantDigits: 6 }) : (t: number) => dateOf(t, step, to - from));
  const labels: { at: number; text: string }[] = []; // of times, as many as do not touch
  let free = 0;
  for (const t of xs) {
    const text = writeX(t), half = 3.4 * text.length;
    const at = Math.min(x(t), width - half);
    if (at - half < free) continue;
    labels.push({ at, text });
    free = at + half + 10;
  }
  const nearest = (clientX: number) => {
    const px = clientX - box.current!.getBoundingClientRect().left;
    let best = 0;
    times.forEach((t, i) => {
      if (Math.abs(x(t) - px) < Math.abs(x(times[best]!) - px)) best = i;
    });
    setHover(best);
  };
  const key = (e: KeyboardEvent) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (!way) return;
    e.preventDefault();
    const given = times.map((_, i) => i).filter((i) => lines.some((l) => l.values[i] != null));
    setHover((way > 0 ? given : given.toReversed()).find((i) => hover === undefined || (i - hover) * way > 0) ?? hover);
  };
  return (
    <figure class="chart">
      <div ref={box} tabIndex={0} role="group" aria-label={`${props.label.replace(/\.?$/, ".")} The arrow keys read the values.`} onKeyDown={key} onBlur={() => setHover(undefined)} onPointerMove={(e) => nearest(e.clientX)} onPointerLeave={() => setHover(undefined)}>
        <svg class="plot" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
          {ys.map((v) => <><line class="axis" x1={left} x2={width - right} y1={y(v)} y2={y(v)} /><text x={left - 6} y={y(v) + 4} text-anchor="end">{write(v)}</text></>)}
          {labels.map((l) => <text x={l.at} y={height - 5} text-anchor="middle">{l.text}</text>)}
          {props.marks?.map((t) => <line class="mark" x1={x(t)} x2={x(t)} y1={above} y2={height - bottom} />)}
          {lines.map((l, i) => (l.low && l.high ? runs(times.map((_, k) => l.low![k] != null && l.high![k] != null)).map((run) => (
            <path class={`band series-${(i % 4) + 1}`} d={`M${[...run.map((k) => `${x(times[k]!)} ${y(l.high![k]!)}`), ...run.toReversed().map((k) => `${x(times[k]!)} ${y(l.low![k]!)}`)].join("L")}Z`} />
          )) : null))}
          {lines.map((l, i) => runs(l.values.map((v) => v !== null)).map((run) => (
            run.length === 1
              ? <circle class={`dot series-${(i % 4) + 1}${l.dashed ? " dashed" : ""}`} cx={x(times[run[0]!]!)} cy={y(l.values[run[0]!]!)} r="3" />
              : <path class={`line series-${(i % 4) + 1}${l.dashed ? " dashed" : ""}`} d={path(run.map((k) => [x(times[k]!), y(l.values[k]!)]), props.curved)} />
          )))}
          {hover === undefined || times[hover] === undefined ? null : <line class="mark" x1={x(times[hover]!)} x2={x(times[hover]!)} y1={above} y2={height - bottom} />}
        </svg>
      </div>
      <figcaption aria-live="polite">
        {hover === undefined || times[hover] === undefined ? null : <span>{props.at || props.counts ? writeX(times[hover]!) : to - from > 86_400 ? moment(new Date(times[hover]! * 1000).toISOString()) : dateOf(times[hover]!, 60, 0)}:</span>}
        {lines.length > 1 || hover !== undefined ? lines.map((l, i) => <span class={`key-${(i % 4) + 1}${l.dashed ? " dashed" : ""}`}>{l.label}{hover === undefined || l.values[hover] == null ? "" : ` ${write(l.values[hover]!)}`}</span>) : null}
      </figcaption>
    </figure>
  );
}

// path leads through points, with the slopes between their neighbours if it is curved.
function path(p: [number, number][], curved: boolean | undefined): string {
  const write = (v: number) => v.toFixed(1);
  if (!curved) return `M${p.map(([x, y]) => `${write(x)} ${write(y)}`).join("L")}`;
  const slope = (i: number) => {
    const a = p[Math.max(i - 1, 0)]!, b = p[Math.min(i + 1, p.length - 1)]!;
    return (b[1] - a[1]) / (b[0] - a[0] || 1);
  };
  return p.reduce((d, [x, y], i) => {
    if (i === 0) return `M${write(x)} ${write(y)}`;
    const [x0, y0] = p[i - 1]!, third = (x - x0) / 3;
    return `${d}C${write(x0 + third)} ${write(y0 + slope(i - 1) * third)} ${write(x - third)} ${write(y - slope(i) * third)} ${write(x)} ${write(y)}`;
  }, "");
}

// ticks returns round numbers that cover a range in about n steps.
function ticks(low: number, high: number, n: number): number[] {
  const rough = Math.max(high - low, 1e-12) / n;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * size).find((s) => s >= rough * 0.999)!;
  const list = [];
  for (let k = Math.floor(low / step + 1e-9); list.length < 2 || list[list.length - 1]! < high - step * 1e-6; k++) list.push(Number((k * step).toPrecision(12)));
  return list;
}

const steps = [1, 2, 5, 10, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000];

// instants returns round times of the reader's time zone in a range: days begin at midnight, also after the clocks changed.
function instants(from: number, to: number, step: number): number[] {
  const zone = (t: number) => new Date(t * 1000).getTimezoneOffset() * 60;
  const list = [];
  for (let t = Math.ceil((from - zone(from)) / step) * step; t <= to - zone(from); t += step) list.push(t + zone(step > 3600 ? t + zone(from) : from));
  return list.filter((t) => from <= t && t <= to);
}

// The labels of the axes are in the reader's locale.
const days = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const weekdays = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dateOf = (t: number, step: number, span: number) => (step >= 86_400 ? (span > 691_200 ? days : weekdays) : step >= 60 ? minutes : seconds).format(t * 1000);

// runs returns the places of values that follow each other.
export function runs(there: boolean[]): number[][] {
  const all: number[][] = [];
  there.forEach((is, i) => {
    if (is && there[i - 1]) all[all.length - 1]!.push(i);
    else if (is) all.push([i]);
  });
  return all;
}
