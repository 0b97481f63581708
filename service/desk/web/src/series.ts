// The answers of v1/overview and v1/placements/NAME/series: see the schemas of the OpenAPI document.
export interface Means {
  rounds: number[];
  mean: (number | null)[];
  standard_error: (number | null)[];
}

export interface Sums {
  estimate: number[];
  standard_error: number[];
}

export interface Series {
  placement: string;
  window: number;
  times: number[];
  seconds: number[];
  decisions: number[];
  open: number[];
  policy?: Means;
  chance?: Means;
  baseline?: Means;
  over_chance?: Sums;
  over_baseline?: Sums;
}

export interface Health {
  level: "bad" | "warning" | "note";
  text: string;
}

export interface Entry {
  name: string;
  mode: string;
  policy: string;
  decisions: number;
  rate: number;
  revenue: number | null;
  standard_error: number | null;
  chance: number | null;
  baseline: number | null;
  health: Health[];
  series: Series;
}

export interface OverviewAnswer {
  total: number;
  placements: Entry[];
}

// z is the quantile of bands: 95 % of a normal distribution.
export const z = 1.96;

// settled are the means of points whose decisions have mostly ended: before that sales are there and the others are not.
export function settled(s: Series, m: Means): (number | null)[] {
  return m.mean.map((v, i) => (s.open[i]! * 2 > s.decisions[i]! ? null : v));
}

// edge is a bound of the band around values.
export function edge(values: (number | null)[], errors: (number | null)[], sign: number): (number | null)[] {
  return values.map((v, i) => (v === null || errors[i] == null ? null : v + sign * z * errors[i]!));
}

// rates are decisions a second. The last point is not over yet: it counts for as long as it has lasted.
export function rates(s: Series, now: number): number[] {
  return s.decisions.map((n, i) => n / Math.max(Math.min(s.seconds[i]!, now - s.times[i]!), 1));
}
