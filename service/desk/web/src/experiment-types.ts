// The reports of v1/placements/NAME/experiment: see the schema ExperimentReport of the OpenAPI document.
export interface Interval {
  low: number;
  estimate: number;
  high: number;
}

interface Totals {
  rounds: number;
  purchases: number;
  revenue: number;
}

export interface Variant {
  name: string;
  show: "policy" | "baseline" | "uniform";
  share: number;
  decisions_made: number;
  shoppers: number;
  deferred?: number;
  seen?: number;
  seen_less_than?: string;
  totals: Totals;
  late_revenue: number;
  mean: Interval;
  difference?: Interval;
  learner?: { policy: Record<string, unknown>; own: boolean; learned?: number; lag_rounds?: number; broken?: boolean; problem?: string };
  latency?: { p50_seconds: number; p95_seconds: number };
}

export interface Verdict {
  result: "ship" | "weigh" | "tie" | "stop" | "continue";
  untrusted?: boolean;
  variant?: string;
  tied?: string[];
  reason: string;
}

interface Metric {
  name: string;
  better: "higher" | "lower";
  reported: number;
  variants: { variant: string; mean: Interval; difference?: Interval; worse: boolean }[];
}

export interface ExperimentReport {
  name: string;
  entry: number;
  begun: string;
  ended?: string;
  starts?: string;
  ends?: string;
  control: string;
  learn_from: string;
  min_gain: number;
  decisions: number;
  counts_from?: string;
  variants: Variant[];
  pairs: { variant: string; over: string; difference: Interval }[];
  metrics: Metric[];
  segment_by?: string;
  segments?: { value: string; variants: { variant: string; totals: Totals; difference?: Interval }[] }[];
  phases: { time: string; shares: number[]; moved_share: number }[];
  sample_ratio: { shoppers: number; p_value: number; mismatch: boolean };
  points: { time: string; decisions: number; means: Interval[]; differences: Interval[] }[];
  verdict: Verdict;
  remaining?: { decisions: number; seconds: number };
}
