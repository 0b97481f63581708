import { Chart, type Line } from "./chart";
import { edge, smooth, spread, type Entry } from "./series";
import { Empty, money, portion, short } from "./ui";

const fewest = 10; // decisions of a point
const fewestCompared = 30; // of a comparison

// Revenue is what a visit earns over time, with what it is compared with dashed, and the third line dotted.
export function Revenue(props: { of: Entry; seconds: number; height?: number }) {
  const { of: p } = props;
  const s = spread(p.series);
  const now = Date.parse(s.now) / 1000, first = s.start_unix_seconds[0] ?? now;
  const range: [number, number] = [Math.min(props.seconds === 0 ? first : Math.max(first, now - props.seconds), now - 10), now];
  const lines: Line[] = [];
  const said: string[] = [];
  if (s.policy) {
    const { values, errors } = smooth(s, s.policy, fewest, false);
    const random = p.policy === "uniform";
    lines.push({ label: random ? "random pages" : "Vitrine", values, low: edge(values, errors, -1).map((v, i) => (v === null || values[i]! < 0 ? v : Math.max(v, 0))), high: edge(values, errors, 1) });
    said.push(`Solid: ${random ? "random pages with their" : "Vitrine with its"} 95% band.`);
  }
  if (s.chance) {
    const random = p.explore === "swaps" ? "pages with one random item" : "random pages";
    lines.push({ label: random, values: smooth(s, s.chance, fewestCompared).values, dashed: true });
    said.push(`Dashed: ${random}${p.mode === "explore" ? `, shown in ${portion(p.explore_share)} of visits` : ""}.`);
  }
  if (s.baseline) {
    lines.push({ label: "your own pages", values: smooth(s, s.baseline, fewestCompared).values, dashed: true });
    said.push(`${s.chance ? "Dotted" : "Dashed"}: your own pages${p.holdout_share && p.mode !== "experiment" ? `, shown to ${portion(p.holdout_share)} of shoppers` : ""}.`);
  }
  if (!lines.some((l) => l.values.some((v) => v !== null))) return <Empty>The curve of revenue begins once some dozens of visits have their outcomes, or the wait for them is over.</Empty>;
  return (
    <>
      <Chart label={`Revenue per visit of ${p.name} over time. ${said.join(" ")}`} times={s.start_unix_seconds} lines={lines} range={range} height={props.height ?? 220} format={(v) => money(v, p.currency, short)} />
      <p class="quiet">Revenue per visit. {said.join(" ")}</p>
    </>
  );
}
