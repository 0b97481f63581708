import { lazy } from "./lazy";
import { count, moment, number, percent, Table } from "./ui";

const Charts = lazy(() => import("./experiment-charts"));

// The reports of v1/placements/NAME/experiment: see the schema ExperimentReport of the OpenAPI document.
export interface Interval {
  low: number;
  estimate: number;
  high: number;
}

export interface Variant {
  name: string;
  show: "policy" | "baseline" | "uniform";
  share: number;
  asked: number;
  shoppers: number;
  totals: { rounds: number; purchases: number; revenue: number };
  late_revenue: number;
  mean: Interval;
  difference?: Interval;
  learner?: { policy: Record<string, unknown>; own: boolean; learned?: number; lag_rounds?: number; broken?: boolean; problem?: string };
}

export interface Verdict {
  rule: "ship" | "keep either" | "stop" | "keep going";
  variant?: string;
  reason: string;
}

export interface ExperimentReport {
  name: string;
  entry: number;
  begun: string;
  ended?: string;
  control: string;
  learn_from: string;
  min_gain: number;
  holdout_share: number;
  decisions: number;
  counts_from?: string;
  variants: Variant[];
  pairs: { variant: string; over: string; difference: Interval }[];
  holdout?: Variant;
  phases: { time: string; shares: number[]; holdout_share: number; moved_share: number }[];
  sample_ratio: { shoppers: number; p_value: number; mismatch: boolean };
  points: { time: string; decisions: number; means: Interval[]; differences: Interval[] }[];
  verdict: Verdict;
  remaining?: { decisions: number; seconds: number };
}

const level = { ship: "good", "keep either": "good", stop: "bad", "keep going": "warning" };
const digits = { maximumSignificantDigits: 4 };
const signed = { ...digits, signDisplay: "exceptZero" } as const;

export const words = { policy: "a policy", baseline: "what the shop shows by itself", uniform: "items drawn by chance" };

function shows(v: Variant): string {
  if (!v.learner) return words[v.show];
  return `policy ${String(v.learner.policy["name"] ?? "")}${v.learner.own ? ", with a learner of its own" : ", the placement's"}`;
}

// VerdictLine is what the stop rule says.
export function VerdictLine(props: { of: Verdict }) {
  const { of: v } = props;
  return <p class="row"><span class={`badge ${level[v.rule]}`}>{v.rule === "keep either" && v.variant ? "tie: keep" : v.rule}{v.variant ? ` ${v.variant}` : ""}</span> <span>{v.reason}.</span></p>;
}

// Difference is what a variant earns a decision above the control.
export function Difference(props: { of: Interval | undefined }) {
  const { of: d } = props;
  return d ? <>{number(d.estimate, signed)}<br /><small class="nowrap">{range(d, signed)}</small></> : <>–</>;
}

const range = (i: Interval, format: Intl.NumberFormatOptions) => `${number(i.low, format)} to ${number(i.high, format)}`;

// Report shows what an experiment has found.
export function Report(props: { of: ExperimentReport }) {
  const { of: r } = props;
  const rows = r.holdout ? [...r.variants, r.holdout] : r.variants;
  const learner = (v: Variant) => (v.learner?.broken ? "broken: " + v.learner.problem : v.learner?.learned === undefined ? "–" : count(v.learner.learned) + (v.learner.lag_rounds ? `, ${count(v.learner.lag_rounds)} behind` : ""));
  return (
    <>
      <VerdictLine of={r.verdict} />
      <p class="quiet">Since {moment(r.begun)}{r.ended ? `, until ${moment(r.ended)}` : ""}. {count(r.decisions)} of {count(r.variants.reduce((n, v) => n + v.asked, 0))} decisions count{r.counts_from ? `; the first ones by ${moment(r.counts_from)}` : ""}. The learners of variants learn from {r.learn_from === "own" ? "their own shoppers only" : "all shoppers"}.{r.min_gain > 0 ? ` A change is worth making if it gains ${number(r.min_gain)} a decision.` : ""}{r.remaining ? ` If all goes on as it does, about ${number(r.remaining.decisions, { maximumSignificantDigits: 2 })} more decisions will tell, by ${moment(new Date(Date.now() + 1000 * r.remaining.seconds).toISOString())}.` : ""}</p>
      <Table
        caption={`Variants of ${r.name}`}
        rows={rows}
        empty="There are no variants."
        columns={[
          { title: "Variant", cell: (v) => <>{v.name}{v.name === r.control ? " (control)" : ""}<br /><small class="quiet">{v === r.holdout ? "what the shop shows by itself, in no experiment" : shows(v)}</small></>, text: true },
          { title: "Share", cell: (v) => percent(v.share) },
          { title: "Decisions", cell: (v) => count(v.totals.rounds) },
          { title: "Sales", cell: (v) => count(v.totals.purchases) },
          { title: "Revenue a decision", cell: (v) => (v.totals.rounds === 0 ? "–" : <>{number(v.mean.estimate, digits)}<br /><small class="nowrap">{range(v.mean, digits)}</small></>) },
          { title: `More than ${r.control}`, cell: (v) => <Difference of={v.difference} /> },
          ...(rows.some((v) => v.late_revenue !== 0) ? [{ title: "Revenue that came later", cell: (v: Variant) => number(v.late_revenue, digits) }] : []),
          { title: "Rounds learned", cell: learner },
        ]}
      />
      <p class="quiet">The difference weighs each decision by the share of its variant, so after few decisions, or if shares have changed, it is not that of the two means.</p>
      {r.pairs.length > 0 ? (
        <Table
          caption={`Which variant of ${r.name} is the best`}
          rows={r.pairs}
          empty="There are no pairs."
          columns={[
            { title: "Variants", cell: (p) => `${p.variant} over ${p.over}`, text: true },
            { title: "Difference a decision", cell: (p) => <>{number(p.difference.estimate, signed)}<br /><small class="nowrap">{range(p.difference, signed)}</small></> },
          ]}
        />
      ) : null}
      {r.points.length > 1 ? <Charts of={r} /> : <p class="empty">The charts begin with the second point in time: the first decisions count once their attribution window is over.</p>}
      <h3>Are the shoppers divided as planned?</h3>
      <p><span class={r.sample_ratio.mismatch ? "bad" : "good"}>{r.sample_ratio.mismatch ? "No: do not trust the differences, and find the cause first." : "Nothing speaks against it."}</span> p = {number(r.sample_ratio.p_value, { maximumSignificantDigits: 2 })}, from {count(r.sample_ratio.shoppers)} shoppers: {rows.map((v) => `${v.name} ${count(v.shoppers)}`).join(", ")}.</p>
      {r.phases.length > 1 ? (
        <>
          <h3>Shares</h3>
          <ul>{r.phases.map((p, k) => <li key={p.time}>{moment(p.time)}: {p.shares.map((s, v) => `${r.variants[v]?.name} ${percent(s)}`).join(", ")}{p.holdout_share ? `; ${percent(p.holdout_share)} held out` : ""}{k > 0 ? `; ${percent(p.moved_share)} of the shoppers moved` : ""}</li>)}</ul>
        </>
      ) : null}
    </>
  );
}
