// Spark is a small curve without axes, with a band where low and high are given. Missing values leave gaps. label says
// what it shows to those who cannot see it.
export function Spark(props: { label: string; times: number[]; values: (number | null)[]; low?: (number | null)[]; high?: (number | null)[] }) {
  const width = 240, height = 48, margin = 3;
  const given = [props.values, props.low ?? [], props.high ?? []].flat().filter((v): v is number => v !== null && Number.isFinite(v));
  if (given.length === 0) return <p class="empty" aria-label={`${props.label}: nothing yet`}>Nothing yet</p>;
  const bottom = Math.min(0, ...given), top = Math.max(...given, bottom + 1e-12);
  const first = props.times[0]!, span = Math.max(props.times[props.times.length - 1]! - first, 1);
  const x = (i: number) => (margin + ((props.times[i]! - first) / span) * (width - 2 * margin)).toFixed(1);
  const y = (v: number) => (height - margin - ((v - bottom) / (top - bottom)) * (height - 2 * margin)).toFixed(1);
  let line = "";
  let pen = false;
  props.values.forEach((v, i) => {
    if (v === null) {
      pen = false;
      return;
    }
    line += `${pen ? "L" : "M"}${x(i)} ${y(v)}`;
    if (!pen && (props.values[i + 1] ?? null) === null) line += "h0.01"; // a point of its own
    pen = true;
  });
  const { low, high } = props;
  const band = low && high ? runs(props.times.map((_, i) => (low[i] ?? null) !== null && (high[i] ?? null) !== null)).map((run) => "M" + [...run.map((i) => `${x(i)} ${y(high[i]!)}`), ...run.toReversed().map((i) => `${x(i)} ${y(low[i]!)}`)].join("L") + "Z") : [];
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={props.label}>
      {band.map((d) => <path class="band" d={d} />)}
      <path class="line" d={line} />
    </svg>
  );
}

// runs returns the places of values that follow each other.
function runs(there: boolean[]): number[][] {
  const all: number[][] = [];
  there.forEach((is, i) => {
    if (is && there[i - 1]) all[all.length - 1]!.push(i);
    else if (is) all.push([i]);
  });
  return all;
}
