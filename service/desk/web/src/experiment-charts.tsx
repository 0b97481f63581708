import { Chart, type Line } from "./chart";
import type { ExperimentReport, Interval } from "./experiment-types";
import { money, short } from "./ui";

// Charts draws what the variants earn over time, and their differences to the control. The scale is that of the later
// intervals: the first ones are much wider.
export default function Charts(props: { of: ExperimentReport; currency: string | undefined }) {
  const { of: r } = props;
  const format = (v: number) => money(v, props.currency, short);
  const times = r.points.map((p) => Date.parse(p.time) / 1000);
  const from = Math.floor(r.points.length / 4);
  const lines = (rows: Interval[][], zero: boolean): Line[] => {
    const shown = rows.slice(from).flatMap((row) => row.filter((_, v) => !zero || r.variants[v]?.name !== r.control));
    const low = Math.min(...shown.map((i) => i.low), ...(zero ? [0] : []));
    const high = Math.max(...shown.map((i) => i.high), ...(zero ? [0] : []));
    const within = (v: number) => Math.min(Math.max(v, low), high);
    return r.variants.map((v, k) => {
      const line = { label: v.name, values: rows.map((row) => within(row[k]!.estimate)) };
      if (zero && v.name === r.control) return line;
      return { ...line, low: rows.map((row) => within(row[k]!.low)), high: rows.map((row) => within(row[k]!.high)) };
    });
  };
  return (
    <div class="charts">
      <section>
        <h3>Revenue per visit</h3>
        <Chart label={`Revenue per visit of the variants of ${r.name} over time, with 95% bands`} times={times} lines={lines(r.points.map((p) => p.means), false)} format={format} />
      </section>
      <section>
        <h3>More than {r.control}</h3>
        <Chart label={`What the variants of ${r.name} earn per visit above ${r.control} over time, with bands that hold together with 95%`} times={times} lines={lines(r.points.map((p) => p.differences), true)} format={format} />
      </section>
      <p class="quiet">The bands are 95% intervals. A variant is clearly better once its band on the right is above 0, at any time.</p>
    </div>
  );
}
