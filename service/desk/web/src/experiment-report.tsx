import type { ComponentChildren } from "preact";
import { placement } from "./api";
import type { ExperimentReport, Interval, Variant, Verdict } from "./experiment-types";
import { lazy } from "./lazy";
import { amounts, count, duration, Empty, moment, money, number, percent, plural, portion, sentence, Table, withSign } from "./ui";

const Charts = lazy(() => import("./experiment-charts"));

const level = { ship: "good", weigh: "warning", tie: "good", stop: "bad", continue: "waiting" };
type Write = (value: number) => string;

const points: Write = (v) => `${number(100 * v, { maximumFractionDigits: 1, signDisplay: "exceptZero" })} points`;
const amount: Write = (v) => money(v, undefined); // of something else than revenue
const change: Write = (v) => money(v, undefined, withSign);

export const words = { policy: "Vitrine chooses", baseline: "your own page", uniform: "random items" };

function shows(v: Variant): string {
  if (!v.learner) return words[v.show];
  return v.learner.own ? `${words[v.show]}, by ${String(v.learner.policy["name"] ?? "")}, learning for this variant only` : words[v.show];
}

// phase says where an experiment stands: before its start, while it runs, or after its end.
export function phase(r: Pick<ExperimentReport, "starts" | "ends" | "ended">, now = Date.now()): "waits" | "runs" | "over" {
  if (r.ended || (r.ends && Date.parse(r.ends) <= now)) return "over";
  return r.starts && Date.parse(r.starts) > now ? "waits" : "runs";
}

// from is when an experiment began to divide shoppers.
export const from = (r: ExperimentReport) => (r.starts && Date.parse(r.starts) > Date.parse(r.begun) ? r.starts : r.begun);

// never reports whether an experiment ended before its start.
export const never = (r: ExperimentReport) => !!r.ended && !!r.starts && Date.parse(r.ended) < Date.parse(r.starts);

// visits is how many visits took part in an experiment, also those that do not count yet.
export const visits = (r: ExperimentReport) => r.variants.reduce((n, v) => n + v.decisions_made, 0);

const title = (v: Verdict) => {
  if (v.result === "ship") return `Switch to ${v.variant}`;
  if (v.result === "weigh") return `Your choice: ${v.variant}`;
  if (v.result === "tie") return v.variant ? `A tie: keep ${v.variant}` : "A tie";
  return v.result === "stop" ? "Stop" : "Too early to tell";
};

// VerdictLine is what the stop rule says.
export function VerdictLine(props: { of: Verdict; currency: string | undefined; over?: boolean }) {
  const { of: v } = props;
  const text = props.over && v.result === "continue" ? "No winner" : title(v);
  return <p class="row"><span class={`badge ${level[v.result]}`}>{text}</span> <span>{sentence(amounts(v.reason, props.currency))}</span></p>;
}

const range = (i: Interval, write: Write) => `${write(i.low)} to ${write(i.high)}`;

// Amount is an estimate with its interval below it.
function Amount(props: { of: Interval | undefined; write: Write }) {
  const { of: i, write } = props;
  return i ? <>{write(i.estimate)}<br /><small class="nowrap">{range(i, write)}</small></> : <>–</>;
}

// Report shows what an experiment has found.
export function Report(props: { placement: string; of: ExperimentReport; currency: string | undefined; wait?: number | undefined; actions?: ComponentChildren }) {
  const { of: r, currency } = props;
  const paid: Write = (v) => money(v, currency);
  const gained: Write = (v) => money(v, currency, withSign);
  const at = phase(r);
  const made = visits(r);
  return (
    <>
      <VerdictLine of={r.verdict} currency={currency} over={!!r.ended || (at === "over" && r.decisions === made)} />
      <Ahead of={r} write={paid} />
      <p class="quiet">
        {at === "waits" ? `Starts on ${moment(r.starts)}. ` : never(r) ? `It was ended on ${moment(r.ended)}, before its start. ` : `Since ${moment(from(r))}${at === "over" ? `, until ${moment(r.ended ?? r.ends)}` : ""}. `}
        {count(r.decisions)} of {plural(made, "visit")} {r.ended ? "counted" : "counted so far"}{r.ended || r.decisions === made ? "" : r.counts_from ? `; the next visits will count by ${moment(r.counts_from)}` : props.wait ? `; the others will count with the first visit that comes ${duration(props.wait / 16)}, a sixteenth of the wait for a sale, after them` : ""}. A visit counts once its outcome is known or the wait for it is over.
        {at === "runs" && r.ends ? ` Planned until ${moment(r.ends)}.` : ""}
        {r.min_gain > 0 ? ` A change is worth making if it gains ${paid(r.min_gain)} per visit.` : ""}
      </p>
      {at === "runs" && r.remaining ? <TimeLeft of={r} left={r.remaining} /> : null}
      <p class="controls"><a href={placement(props.placement, "experiment", String(r.entry), "report")} target="_blank" rel="noopener">Report to print or send</a>{props.actions}</p>
      <Variants of={r} currency={currency} />
      {r.pairs.length > 0 ? (
        <Table
          caption={`Variants of ${r.name} against each other`}
          rows={r.pairs}
          empty="There are no pairs."
          columns={[
            { title: "Against each other", cell: (p) => <><bdi>{p.variant}</bdi> over <bdi>{p.over}</bdi></>, text: true },
            { title: "Revenue per visit", cell: (p) => <Amount of={p.difference} write={gained} /> },
          ]}
        />
      ) : null}
      {r.points.length > 1 ? <Charts of={r} currency={currency} /> : <p class="empty">The charts begin with the next visits that count.</p>}
      <Harm of={r} />
      <Segments of={r} write={gained} />
      <h3>Are the shoppers divided as planned?</h3>
      {r.sample_ratio.shoppers === 0 ? <Empty>No visits yet.</Empty> : <p><span class={r.sample_ratio.mismatch ? "bad" : "good"}>{r.sample_ratio.mismatch ? "No. Do not trust the differences, and find the cause first: requests that fail, shopper ids that change, a cache." : "Nothing speaks against it."}</span> {plural(r.sample_ratio.shoppers, "shopper")}: {r.variants.map((v) => `${v.name} ${count(v.shoppers)}`).join(", ")} (p = {number(r.sample_ratio.p_value, { maximumSignificantDigits: 2 })}).</p>}
      <Details of={r} />
    </>
  );
}

// Variants is what each variant earns.
function Variants(props: { of: ExperimentReport; currency: string | undefined }) {
  const { of: r, currency } = props;
  const paid: Write = (v) => money(v, currency);
  return (
    <Table
      caption={`Variants of ${r.name}`}
      rows={r.variants}
      empty="There are no variants."
      columns={[
        { title: "Variant", cell: (v) => <><bdi>{v.name}</bdi>{v.name === r.control ? " (compared with)" : ""}<br /><small class="quiet">{shows(v)}</small></>, text: true },
        { title: "Shoppers", cell: (v) => portion(v.share), wide: true },
        { title: "Visits", cell: (v) => count(v.totals.rounds), wide: true },
        ...(r.variants.some((v) => v.deferred) ? [{ title: "First pages seen", cell: (v: Variant) => (v.deferred ? <span class={v.seen_less_than ? "bad" : ""}>{percent((v.seen ?? 0) / v.deferred)}</span> : "–"), wide: true }] : []),
        { title: "Bought something", cell: (v) => (v.totals.rounds === 0 ? "–" : percent(v.totals.purchases / v.totals.rounds)), wide: true },
        { title: "Revenue per visit", cell: (v) => <Amount of={v.totals.rounds === 0 ? undefined : v.mean} write={paid} /> },
        { title: `More than ${r.control}`, cell: (v) => <Amount of={v.difference} write={(x) => money(x, currency, withSign)} /> },
        ...(r.variants.some((v) => v.late_revenue !== 0) ? [{ title: "Late sales and returns, not counted", cell: (v: Variant) => paid(v.late_revenue), wide: true }] : []),
      ]}
    />
  );
}

// Holdout compares everybody with the shoppers who are held out.
export function Holdout(props: { of: ExperimentReport; currency: string | undefined }) {
  const { of: r } = props;
  const held = r.variants.find((v) => v.name === r.control)!;
  return (
    <>
      <p>{portion(held.share)} of shoppers are held out: they always see your own page, and take part in no experiment. “vitrine” is everybody else, since {moment(r.begun)}.</p>
      <Variants of={r} currency={props.currency} />
      {r.verdict.untrusted ? <p class="bad">{sentence(r.verdict.reason)}</p> : null}
    </>
  );
}

// Ahead says how much more the variant ahead earns.
function Ahead(props: { of: ExperimentReport; write: Write }) {
  const { of: r, write } = props;
  const list = r.variants.filter((v) => v.difference).sort((a, b) => b.difference!.estimate - a.difference!.estimate);
  // the one that the verdict is about
  const ahead = list.find((v) => v.name === r.verdict.variant) ?? list.find((v) => v.difference!.low > 0 && v.difference!.low >= r.min_gain) ?? list[0];
  if (!ahead || r.decisions === 0) return null;
  const d = ahead.difference!;
  const side = (v: number) => `${write(Math.abs(v))} ${v < 0 ? "less" : "more"}`;
  return (
    <p class="headline">
      <bdi>{ahead.name}</bdi> earns <strong>{side(d.estimate)}</strong> per visit than <bdi>{r.control}</bdi>{d.low > 0 || d.high < 0 ? "." : ", but that may still be chance."}
      <br /><small class="quiet">Between {side(d.low)} and {side(d.high)}, with 95% certainty. If all {plural(r.decisions, "visit")} saw it: between {side(d.low * r.decisions)} and {side(d.high * r.decisions)}.</small>
    </p>
  );
}

function TimeLeft(props: { of: ExperimentReport; left: { decisions: number; seconds: number } }) {
  const { of: r, left } = props;
  const until = new Date(Date.now() + 1000 * left.seconds).toISOString();
  const late = r.ends && Date.parse(r.ends) < Date.parse(until);
  return (
    <div class="left">
      <progress value={r.decisions} max={r.decisions + left.decisions} aria-label="Visits so far, of those that are probably needed" />
      <p class={late ? "warning" : ""}>
        About {number(left.decisions, { maximumSignificantDigits: 2 })} more visits should settle it, by {moment(until)} at the present rate.
        {late ? " That is after the planned end: a gain this small probably cannot be shown in time." : ""}
      </p>
    </div>
  );
}

const metricWords: Record<string, string> = { conversion: "Visits with a sale", items: "Items bought per visit" };

// Harm shows what else the variants change.
function Harm(props: { of: ExperimentReport }) {
  const { of: r } = props;
  const rows = (r.metrics ?? []).flatMap((m) => m.variants.filter((v) => v.variant !== r.control).map((v) => ({ ...v, difference: m.reported > 0 ? v.difference : undefined, metric: m })));
  const share = (name: string) => (name === "conversion" ? points : change);
  const took = r.variants.filter((v) => v.latency);
  return (
    <>
      <h3>Does anything suffer?</h3>
      <Table
        caption={`What else the variants of ${r.name} change`}
        rows={rows}
        empty="Nothing is measured yet."
        columns={[
          { title: "Measure", cell: (v) => <>{metricWords[v.metric.name] ?? v.metric.name}<br /><small class="quiet"><bdi>{v.variant}</bdi>{v.metric.reported < r.decisions ? `, reported for ${plural(v.metric.reported, "visit")}, 0 for the others` : ""}</small></>, text: true },
          { title: "Average", cell: (v) => (v.difference ? (v.metric.name === "conversion" ? percent : amount)(v.mean.estimate) : "–"), wide: true },
          { title: `Against ${r.control}`, cell: (v) => <Amount of={v.difference} write={share(v.metric.name)} /> },
          { title: "Verdict", plain: true, text: true, cell: (v) => (v.worse ? <span class="bad">clearly worse</span> : v.difference && (v.metric.better === "higher" ? v.difference.low >= 0 : v.difference.high <= 0) ? <span class="good">clearly not worse</span> : v.difference ? "no sign of harm yet" : "") },
        ]}
      />
      {took.length > 0 ? <p class="quiet">95% of requests are answered within {took.map((v) => `${number(v.latency!.p95_seconds * 1000, { maximumSignificantDigits: 2 })} ms (${v.name})`).join(", ")}.</p> : null}
    </>
  );
}

// Segments shows the results by segment, with a warning.
function Segments(props: { of: ExperimentReport; write: Write }) {
  const { of: r } = props;
  if (!r.segment_by) return null;
  const rows = (r.segments ?? []).flatMap((s) => s.variants.filter((v) => v.variant !== r.control).map((v) => ({ ...v, value: s.value, against: s.variants.find((o) => o.variant === r.control)! })));
  const certain = rows.filter((v) => v.difference && (v.difference.low > 0 || v.difference.high < 0)).length;
  return (
    <details>
      <summary>By {r.segment_by}</summary>
      <p class="warning">Look with care: among {plural(rows.length, "comparison")}, some look different by chance. The intervals here are wide enough to allow for that, so believe a difference only if its whole interval is on one side of 0{certain === 0 ? ": none is yet" : ""}. Decide by the whole experiment, and test a surprising segment in another one.</p>
      <Table
        caption={`Results of ${r.name} by ${r.segment_by}`}
        rows={rows}
        empty="No visit counts yet."
        columns={[
          { title: r.segment_by, cell: (v) => <><bdi>{v.value || "all others"}</bdi><br /><small class="quiet"><bdi>{v.variant}</bdi></small></>, text: true },
          { title: "Visits", cell: (v) => count(v.totals.rounds), wide: true },
          { title: `Visits of ${r.control}`, cell: (v) => count(v.against.totals.rounds), wide: true },
          { title: `More than ${r.control} per visit`, cell: (v) => <Amount of={v.difference} write={props.write} /> },
          { title: "Verdict", plain: true, text: true, cell: (v) => (v.difference && v.difference.low > 0 ? <span class="good">clearly more</span> : v.difference && v.difference.high < 0 ? <span class="bad">clearly less</span> : "may be chance") },
        ]}
      />
    </details>
  );
}

// Details are for those who want to check the numbers.
function Details(props: { of: ExperimentReport }) {
  const { of: r } = props;
  const learner = (v: Variant) => (v.learner?.broken ? "broken: " + v.learner.problem : `${plural(v.learner?.learned, "visit")}${v.learner?.lag_rounds ? `, ${count(v.learner.lag_rounds)} behind` : ""}`);
  return (
    <details>
      <summary>How this was measured</summary>
      <ul>
        <li>Each shopper sees the same variant every time. With 95% certainty all intervals contain the true values at all times: look as often as you like, and stop at any time.</li>
        <li>The difference weighs each visit by the share of its variant. After few visits, or if shares have changed, it is not the difference of the two means.</li>
        <li>{r.learn_from === "own" ? "Vitrine learns for each variant from its own shoppers only." : "Vitrine learns from all shoppers, so a variant may profit from what another one tried."}</li>
        {r.variants.filter((v) => v.learner?.learned !== undefined).map((v) => <li key={v.name}><bdi>{v.name}</bdi> has learned from {learner(v)}.</li>)}
        {r.phases.length > 1 ? r.phases.map((p, k) => <li key={p.time}>{moment(p.time)}: {p.shares.map((s, v) => `${r.variants[v]?.name} ${portion(s)}`).join(", ")}{k > 0 ? `; ${percent(p.moved_share)} of the shoppers moved` : ""}</li>) : null}
      </ul>
    </details>
  );
}
