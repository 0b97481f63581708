import { address } from "./address";
import { phase } from "./experiment-report";
import { settled, z, type Entry, type Gain, type Means, type Series } from "./series";
import { duration, Figure, moment, money, number, percent, plural, portion, withSign } from "./ui";

// overWords names what a placement is compared with.
const overWords = (over: string, ofVariant: boolean) => (ofVariant ? over : over === "holdout" || over === "baseline" ? "your own pages" : over === "chance" ? "random pages" : over);

// modeWords says who sees what, and how long no alarm can ring.
export function modeWords(p: Entry): string {
  const watch = p.unwatched_decisions && p.health.every((h) => h.level === "note") ? ` · no alarm can ring in the next ${plural(p.unwatched_decisions, "visit")}` : "";
  return (p.holdout_share ? `${portion(p.holdout_share)} of shoppers always see your own pages, for comparison · ` : "") + modeOf(p) + watch;
}

function modeOf(p: Entry): string {
  switch (p.mode) {
    case "shadow":
      return "Watching: shoppers see your own pages, and Vitrine learns from them";
    case "explore":
      if (p.policy === "uniform") break;
      return `Learning for everyone · ${portion(p.explore_share)} of visits see ${p.explore === "swaps" ? "one random item" : "random pages for comparison"}`;
    case "experiment":
      const e = p.experiment;
      const state = { waits: `starts on ${moment(e?.starts)}`, runs: "runs", over: "is over" }[e ? phase(e) : "runs"];
      return `The experiment “\u2068${e?.name ?? ""}\u2069” ${state}`; // isolated: it may be read from right to left
  }
  return `${p.policy === "uniform" ? "Random pages" : "Learning"} for everyone${p.holdout_share ? " else" : ""}`;
}

// Earned answers first whether a placement earns: in money, with its interval, and compared with something.
export function Earned(props: { of: Entry }) {
  const { of: p } = props;
  if (p.gains.length === 0) return <NoComparison of={p} />;
  return <>{p.gains.map((g) => <EarnedOver key={`${g.variant} ${g.over}`} gain={g} of={p} />)}</>;
}

// mean is what a visit earns over all points that are settled.
function mean(s: Series, of: Means | undefined): number {
  let sum = 0, rounds = 0;
  if (of) settled(s, of).forEach((m, k) => { if (m !== null) [sum, rounds] = [sum + m * of.rounds[k]!, rounds + of.rounds[k]!]; });
  return sum / rounds;
}

function EarnedOver(props: { gain: Gain; of: Entry }) {
  const { gain: g, of: p } = props;
  const { low, estimate, high } = g.total;
  // The series cover the period on screen, g.since another one. The baseline's series also includes shoppers who are not held out.
  const base = g.since ? NaN : mean(p.series, g.over === "chance" ? p.series.chance : p.series.baseline);
  const share = base > 0 ? `${number(g.per_decision.estimate / base, { style: "percent", maximumFractionDigits: 0, signDisplay: "exceptZero" })} · ` : "";
  const over = overWords(g.over, !!g.variant);
  const what = g.variant ? `What ${g.variant} earns over ${over}` : `Earned over ${over}`;
  const late = g.late_revenue ?? 0;
  const tone = low > 0 && low + late > 0 ? "good" : high < 0 ? "bad" : "";
  const ended = !!g.variant && !!p.experiment && phase(p.experiment) === "over"; // no more visits will come
  const more = g.decisions * (((high - low) / 2 / estimate) ** 2 - 1); // the interval becomes narrower with the square root, if both are still shown
  const wait = g.randomized && more > 0 && more < 100 * g.decisions ? `: about ${number(more, { maximumSignificantDigits: 1 })} more visits should settle it` : "";
  return (
    <Figure name={what} value={money(estimate, p.currency, withSign)} tone={tone}>
      {share}between {money(low, p.currency)} and {money(high, p.currency)}{g.variant ? `, if all ${plural(g.decisions, "visit")} saw it` : ""}
      {tone || low > 0 ? "" : ended ? ". That may be chance" : `. Too early to tell${wait}`}
      {g.since ? `. Since ${moment(g.since)}` : ""}
      . {late ? `Returns and sales that came too late would add ${money(late, p.currency, withSign)}` : `Not counted: returns and sales reported after ${duration(p.series.attribution_window_seconds)}`}
      {g.randomized ? "" : ". The two were sometimes shown at different times, so part of the difference may be due to the time"}
    </Figure>
  );
}

// NoComparison says how to get a comparison.
function NoComparison(props: { of: Entry }) {
  const { of: p } = props;
  const settings = address("placements", p.name, "settings");
  const wait = p.series.attribution_window_seconds * (1 + 1 / 16);
  let why = <>No comparison yet. <a href={settings}>Show random pages in 2% of visits</a>, and this becomes an amount of money with its uncertainty.</>;
  if (p.policy === "uniform") why = <>It shows random pages itself, so it earns what they earn.</>;
  else if (p.explore === "swaps" && !p.holdout_share) why = <>One random item on a page does not show what Vitrine earns. <a href={settings}>Let the whole page be random</a>, which a capacity does not allow, or hold shoppers out, and this becomes an amount of money.</>;
  else if (p.mode === "explore" || p.mode === "experiment" || p.holdout_share) why = <>Waiting for the first comparison: decisions count {duration(wait)} after they are made.</>;
  if (p.experiment && !p.holdout_share && phase(p.experiment) === "waits") why = <>The comparison begins with the experiment.</>;
  if (p.mode === "shadow") why = <>Shoppers see your own pages. Once Vitrine decides for some of them, this compares what both earn.</>;
  return <div class="figure"><div class="quiet">Does it earn?</div><p class="words">{why}</p></div>;
}

// Money are the figures that belong to what a placement earns.
export function Money(props: { of: Entry; brief?: boolean }) {
  const { of: p } = props;
  const t = p.by_policy;
  if (p.mode === "shadow" && t.rounds === 0) return <Figure name="Revenue per visit" value={money(mean(p.series, p.series.baseline), p.currency)}>on your own pages</Figure>;
  const give = p.standard_error === null ? "" : `± ${money(z * p.standard_error, p.currency)}`;
  const counted = t.rounds > 0 ? "" : p.decisions === 0 ? "no visit yet" : `Visits count once the first one has its outcome, after ${duration(p.series.attribution_window_seconds)} at the latest. Report visits without a sale, too.`;
  if (props.brief) {
    return <Figure name="Revenue per visit" value={money(p.mean_revenue, p.currency)}>{counted || `${percent(t.purchases / t.rounds)} buy · ${money(t.purchases ? t.revenue / t.purchases : NaN, p.currency)} an order`}</Figure>;
  }
  return (
    <>
      <Figure name="Revenue per visit" value={money(p.mean_revenue, p.currency)}>{give}</Figure>
      <Figure name="Visits with a sale" value={percent(t.rounds ? t.purchases / t.rounds : NaN)}>{counted || `of ${plural(t.rounds, "visit")}`}</Figure>
      <Figure name="Average order" value={money(t.purchases ? t.revenue / t.purchases : NaN, p.currency)}>{plural(t.purchases, "order")}</Figure>
    </>
  );
}
