import type { Interval, Verdict } from "./experiment-types";
// Gain is what a placement earns more than what it is compared with: see the schema of the OpenAPI document.
export interface Gain {
  variant?: string;
  over: string;
  randomized: boolean;
  since?: string;
  decisions: number;
  per_decision: Interval;
  total: Interval;
  late_revenue?: number;
}

// The answers of v1/overview and v1/placements/NAME/series: see the schemas of the OpenAPI document.
export interface Means {
  rounds: number[];
  mean: (number | null)[];
  standard_error: (number | null)[];
}

export interface Sums {
  low: (number | null)[];
  estimate: (number | null)[];
  high: (number | null)[];
}

export interface Series {
  placement: string;
  now: string;
  attribution_window_seconds: number;
  start_unix_seconds: number[];
  length_seconds: number[];
  decisions: number[];
  open: number[];
  policy?: Means;
  chance?: Means;
  baseline?: Means;
  over_chance?: Sums;
  over_baseline?: Sums;
}

export interface Health {
  level: "bad" | "warning" | "waiting" | "note";
  text: string;
  title?: string;
  since?: string;
}

export interface Totals {
  rounds: number;
  purchases: number;
  revenue: number;
  revenue_squares: number;
}

export interface Entry {
  name: string;
  mode: "learn" | "shadow" | "explore" | "experiment";
  policy: string;
  decisions: number;
  decisions_per_second: number;
  mean_revenue: number | null;
  standard_error: number | null;
  currency?: string;
  explore_share?: number;
  explore?: "sets" | "swaps";
  holdout_share?: number;
  by_policy: Totals;
  latency?: { decisions: number; p50_seconds: number; p95_seconds: number; p99_seconds: number };
  gains: Gain[];
  experiment?: { name: string; starts?: string; ends?: string; control: string; verdict: Verdict };
  health: Health[];
  unwatched_decisions?: number;
  series: Series;
}

export interface OverviewAnswer {
  total: number;
  placements: Entry[];
  health?: Health[];
}

// z is the quantile of bands: 95% of a normal distribution.
export const z = 1.96;

// settled are the means of points whose decisions have nearly all ended: before that sales are there and the others are not.
export function settled(s: Series, m: Means): (number | null)[] {
  return m.mean.map((v, i) => (s.open[i]! * 10 > s.decisions[i]! ? null : v));
}

// edge is a bound of the band around values.
export function edge(values: (number | null)[], errors: (number | null)[], sign: number): (number | null)[] {
  return values.map((v, i) => (v === null || errors[i] == null ? null : v + sign * z * errors[i]!));
}

// smooth joins points of a group until each has at least so many rounds, so that few visits are no noise. Curves lead across
// the points between, but not across points without decisions if whole is false.
export function smooth(s: Series, m: Means, least: number, whole = true): { values: (number | null)[]; errors: (number | null)[] } {
  const values: (number | null)[] = m.mean.map(() => null), errors = values.slice();
  let sum = 0, rounds = 0, squares = 0;
  settled(s, m).forEach((v, i) => {
    const n = m.rounds[i]!;
    if (v === null || n === 0) return;
    [sum, rounds, squares] = [sum + v * n, rounds + n, squares + n * v * v + n * (n - 1) * (m.standard_error[i] ?? 0) ** 2];
    if (rounds < least) return; // also at the end, where a few say little
    values[i] = sum / rounds;
    errors[i] = Math.sqrt(Math.max(squares - sum * values[i]!, 0) / (rounds - 1) / rounds);
    [sum, rounds, squares] = [0, 0, 0];
  });
  let before = -1;
  values.forEach((v, i) => {
    if (v === null) return;
    const between = before < 0 || (!whole && s.decisions.slice(before, i).includes(0)) ? 0 : i - before - 1;
    for (let k = i - between; k < i; k++) {
      const part = (s.start_unix_seconds[k]! - s.start_unix_seconds[before]!) / (s.start_unix_seconds[i]! - s.start_unix_seconds[before]!);
      for (const list of [values, errors]) list[k] = list[before]! + (list[i]! - list[before]!) * part;
    }
    before = i;
  });
  return { values, errors };
}

// spread puts an empty point where nothing happened for longer than a point lasts, so that no curve leads across.
export function spread(s: Series): Series {
  const gaps = s.start_unix_seconds.map((t, i) => i > 0 && t > s.start_unix_seconds[i - 1]! + 2 * s.length_seconds[i - 1]!);
  if (!gaps.includes(true)) return s;
  const put = <T>(list: T[], empty: (before: T) => T) => list.flatMap((v, i) => (gaps[i] ? [empty(list[i - 1]!), v] : [v]));
  const means = (m: Means | undefined) => m && { rounds: put(m.rounds, () => 0), mean: put(m.mean, () => null), standard_error: put(m.standard_error, () => null) };
  const sums = (m: Sums | undefined) => m && { low: put(m.low, (v) => v), estimate: put(m.estimate, (v) => v), high: put(m.high, (v) => v) };
  const all = { ...s, start_unix_seconds: s.start_unix_seconds.flatMap((t, i) => (gaps[i] ? [s.start_unix_seconds[i - 1]! + s.length_seconds[i - 1]!, t] : [t])), length_seconds: s.length_seconds.flatMap((v, i) => (gaps[i] ? [s.start_unix_seconds[i]! - s.start_unix_seconds[i - 1]! - s.length_seconds[i - 1]!, v] : [v])), decisions: put(s.decisions, () => 0), open: put(s.open, () => 0) };
  const groups = { policy: means(s.policy), chance: means(s.chance), baseline: means(s.baseline), over_chance: sums(s.over_chance), over_baseline: sums(s.over_baseline) };
  return { ...all, ...(Object.fromEntries(Object.entries(groups).filter(([, v]) => v !== undefined)) as Partial<Series>) };
}
