import { get, placement } from "./api";
import { usePoll } from "./poll";
import type { Totals } from "./series";

// Insight is what a placement has sold and what its policy has learned: see Insight of the OpenAPI document.
export interface Insight {
  mode: string;
  policy: string;
  policy_entry: number;
  time: string;
  effects?: Effect[];
  families?: { family: string; points: { learned: number; weight: number }[] }[];
  positions: { position: number; shown: number; taken: number; effect: number | null }[];
  calibration: { low: number; high: number; rounds: number; predicted: number; observed: number; standard_error: number }[];
  drift?: { recent: Span; before: Span };
  exploration_share: number;
  lag_rounds: number;
  waiting_requests: number;
}

export interface Effect {
  feature: string;
  kind: "number" | "category";
  points: Point[];
  by?: string;
  segments?: { value: string; points: Point[] }[];
}

export interface Point {
  value: number | string;
  utility: number;
  sd: number | null;
  buy_share: number;
  buy_share_low?: number;
  buy_share_high?: number;
}

export interface Span {
  decisions: number;
  earned: number;
  predicted: number;
  by_policy: Totals;
  by_chance: Totals;
  by_baseline: Totals;
}

export const useInsight = (name: string) => usePoll((signal) => get<Insight>(placement(name, "insight"), signal), name, 5000);

const spread = (points: Point[]) => Math.max(...points.map((p) => p.buy_share)) - Math.min(...points.map((p) => p.buy_share));

// reach is how much an effect changes the share that would buy: among everybody, or in the segment that it moves most.
export const reach = (e: Effect) => Math.max(0, ...[e.points, ...(e.segments ?? []).map((s) => s.points)].filter((p) => p.length > 1).map(spread));

// byReach are the effects, those that matter most first.
export const byReach = (effects: Effect[]) => effects.toSorted((a, b) => reach(b) - reach(a));

export const slight = 0.03; // of the share that would buy: less hardly matters

// wish says which value of a number sells best, undefined if it hardly matters.
export function wish(points: Point[], write: (v: number) => string): string | undefined {
  if (points.length < 2 || spread(points) < slight) return undefined;
  const best = points.reduce((a, b) => (b.buy_share > a.buy_share ? b : a));
  if (best === points[0]) return `at ${write(best.value as number)}${best.value === 0 ? "" : " or less"}`;
  if (best === points[points.length - 1]) return `at ${write(best.value as number)} or more`;
  return `at about ${write(best.value as number)}`;
}
