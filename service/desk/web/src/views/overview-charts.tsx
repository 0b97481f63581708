import { Chart, type Line } from "../chart";
import { edge, settled, type Means, type Series, type Sums } from "../series";
import { count, Empty } from "../ui";

// Charts are what a placement earns over time, and how much more than it would have.
export default function Charts(props: { series: Series; seconds: number; experiment: boolean }) {
  const s = props.series;
  const now = Date.now() / 1000, first = s.start_unix_seconds[0] ?? now;
  const range: [number, number] = [props.seconds === 0 ? Math.min(first, now - 10) : Math.min(first, now - props.seconds), now];
  const line = (label: string, m: Means): Line => {
    const values = settled(s, m);
    return { label, values, low: edge(values, m.standard_error, -1), high: edge(values, m.standard_error, 1) };
  };
  const lines: Line[] = [];
  if (s.policy) lines.push(line("policy", s.policy));
  if (s.chance) lines.push(line("chance", s.chance));
  if (s.baseline) lines.push(line("baseline", s.baseline));
  const sum = (label: string, v: Sums): Line => ({ label, values: v.estimate, low: v.low, high: v.high });
  const more: Line[] = [];
  if (s.over_chance) more.push(sum("more than chance", s.over_chance));
  if (s.over_baseline) more.push(sum("more than the baseline", s.over_baseline));
  const open = s.open.reduce((a, b) => a + b, 0);
  return (
    <div class="charts">
      <div>
        <h3>Revenue a decision</h3>
        {lines.length > 0 ? <Chart label={`Revenue a decision of ${s.placement} over time, with 95 % bands`} times={s.start_unix_seconds} lines={lines} range={range} /> : <Empty>No decision has ended yet.</Empty>}
        {open > 0 ? <p class="empty">Decisions that wait for their outcome: {count(open)}. The last points can change until then.</p> : null}
      </div>
      <div>
        <h3>Earned more, in all</h3>
        {more.length > 0
          ? <Chart label={`What the policy of ${s.placement} has earned more, with 95 % bands`} times={s.start_unix_seconds} lines={more} range={range} />
          : props.experiment
            ? <Empty>Charts are in the experiment's report.</Empty>
            : <Empty>There is no comparison yet.</Empty>}
      </div>
    </div>
  );
}
