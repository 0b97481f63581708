import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number } from "./ui";

// Line is a curve over time, with a band from low to high where these are given.
export interface Line {
  label: string;
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
}

const colours = ["--series-1", "--series-2", "--series-3", "--series-4"];

// edge is a bound of a band, which is not drawn itself.
const edge: uPlot.Series = { stroke: "transparent", points: { show: false } };

// The labels of the axes are in the reader's locale.
const days = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const instants: uPlot.Axis.Values = (_, splits, __, ___, step) => splits.map((t) => (step >= 86_400 ? days : step >= 60 ? minutes : seconds).format(t * 1000));
const amounts: uPlot.Axis.Values = (_, splits) => splits.map((v) => number(v, { maximumSignificantDigits: 6 }));

const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Chart draws lines over times, which are in seconds since 1970, or over counts. label says what it shows to those who
// cannot see it. range is what is shown of the axis, what the times cover by default; a dashed line is at each mark.
export function Chart(props: { label: string; times: number[]; lines: Line[]; height?: number; range?: [number, number]; counts?: boolean; marks?: number[] }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const range = useRef(props.range);
  range.current = props.range;
  const marks = useRef<number[]>([]);
  marks.current = props.marks ?? [];
  const shape = props.lines.map((l) => l.label + (l.low ? "±" : "")).join("|");
  const data = () => {
    const columns: (number | null)[][] = [props.times];
    for (const l of props.lines) {
      columns.push(l.values);
      if (l.low && l.high) columns.push(l.low, l.high);
    }
    return columns as unknown as uPlot.AlignedData;
  };
  useEffect(() => {
    const parent = box.current!;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const draw = () => {
      plot.current?.destroy();
      const series: uPlot.Series[] = [{}];
      const bands: uPlot.Band[] = [];
      props.lines.forEach((l, i) => {
        const stroke = colour(colours[i % colours.length]!);
        series.push({ label: l.label, stroke, width: 2, points: { show: l.values.length < 3 } });
        if (l.low && l.high) {
          const at = series.length;
          series.push(edge, edge);
          bands.push({ series: [at + 1, at], fill: stroke + "33" });
        }
      });
      const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 } };
      const drawMarks = (u: uPlot) => {
        u.ctx.save();
        u.ctx.strokeStyle = colour("--muted");
        u.ctx.setLineDash([6, 6]);
        u.ctx.globalAlpha = marks.current.length > 10 ? 0.3 : 1;
        for (const mark of marks.current) {
          const x = u.valToPos(mark, "x", true);
          u.ctx.beginPath();
          u.ctx.moveTo(x, u.bbox.top);
          u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
          u.ctx.stroke();
        }
        u.ctx.restore();
      };
      plot.current = new uPlot({ width: parent.clientWidth, height: props.height ?? 220, series, bands, axes: [{ ...axis, space: 100, values: props.counts ? amounts : instants }, { ...axis, size: 60, values: amounts }], scales: { x: { time: !props.counts, range: (_, low, high) => range.current ?? [low, high] } }, hooks: { draw: [drawMarks] }, legend: { show: false }, cursor: { drag: { x: false, y: false } } }, data(), parent);
    };
    draw();
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: parent.clientWidth, height: props.height ?? 220 }));
    resize.observe(parent);
    dark.addEventListener("change", draw);
    return () => {
      resize.disconnect();
      dark.removeEventListener("change", draw);
      plot.current?.destroy();
    };
  }, [shape, props.height]);
  useEffect(() => plot.current?.setData(data()));
  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={props.label} />
      {props.lines.length > 1 ? <figcaption>{props.lines.map((l, i) => <span class={`key-${(i % colours.length) + 1}`}>{l.label}</span>)}</figcaption> : null}
    </figure>
  );
}
