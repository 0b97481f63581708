import { useState } from "preact/hooks";
import { get, placement } from "../api";
import { Chart } from "../chart";
import { Checks } from "../checks";
import { spread } from "../explain";
import { Gains, type Gain } from "../gains";
import { usePoll } from "../poll";
import { Card, count, Empty, Failure, Loading, moment, number, percent, Table } from "../ui";

// Insight is what a placement has sold and what its policy has learned: see Insight of the OpenAPI document.
interface Insight {
  mode: string;
  gains: Gain[];
  policy: string;
  policy_entry: number;
  time: string;
  items: Item[];
  others?: { shown: number; taken: number; revenue: number };
  others_count?: number;
  effects?: Effect[];
  background_rows?: number;
  families?: { family: string; points: { learned: number; weight: number }[] }[];
  positions: { position: number; shown: number; taken: number; effect: number | null }[];
  calibration: { low: number; high: number; rounds: number; predicted: number; observed: number; standard_error: number }[];
  drift?: { recent: Span; before: Span; fell: boolean };
  exploration_share: number;
  lag_rounds: number;
  waiting_requests: number;
  latency?: { decisions: number; p50_seconds: number; p95_seconds: number; p99_seconds: number };
}

interface Item {
  id: string;
  shown: number;
  taken: number;
  revenue: number;
  utility: number | null;
  sd: number | null;
  solo_revenue: number | null;
}

interface Effect {
  feature: string;
  kind: "number" | "category";
  points: { value: number | string; utility: number; sd: number | null }[];
}

interface Totals {
  rounds: number;
  purchases: number;
  revenue: number;
  revenue_squares: number;
}

interface Span {
  decisions: number;
  earned: number;
  predicted: number;
  by_policy: Totals;
  by_chance: Totals;
  by_baseline: Totals;
}

const few = 25;

export default function Placement(props: { name: string }) {
  const { value: x, failure } = usePoll((signal) => get<Insight>(placement(props.name, "insight"), signal), props.name, 3000);
  if (!x) return failure ? <Failure of={failure} /> : <Loading />;
  return (
    <>
      {failure ? <Failure of={failure} /> : null}
      <Card title="Does it earn?"><Gains of={x.gains} /></Card>
      <Card title="State">
        <dl class="facts">
          <Fact name="Policy" value={x.policy} />
          <Fact name="Mode" value={x.mode} />
          <Fact name="Policy entry" value={count(x.policy_entry)} />
          <Fact name="Drawn by chance" value={percent(x.exploration_share)} />
          <Fact name="Learner is behind by" value={`${count(x.lag_rounds)} outcomes`} />
          <Fact name="Waiting for the log" value={`${count(x.waiting_requests)} requests`} />
          <Fact name="Latency, median" value={duration(x.latency?.p50_seconds)} />
          <Fact name="Latency, 95%" value={duration(x.latency?.p95_seconds)} />
          <Fact name="Latency, 99%" value={duration(x.latency?.p99_seconds)} />
        </dl>
      </Card>
      <Checks name={props.name} />
      <Items of={x} />
      <Card title="Effects of features">
        {x.effects && x.effects.length > 0 ? (
          <>
            <p class="note">The mean utility of {count(x.background_rows)} items as they were shown last, each with the same value of the feature. Bands are one standard deviation.</p>
            <div class="charts">{x.effects.map((e) => <EffectOf key={e.feature} of={e} />)}</div>
          </>
        ) : <Empty>The policy has no effects yet: they begin with the first outcome, and only numbers and categories have them.</Empty>}
      </Card>
      {x.families && x.families.length > 0 ? <Families of={x.families} /> : null}
      <Card title="Page positions">
        <Table
          caption="Page positions"
          rows={x.positions}
          empty="No decision has an outcome yet."
          columns={[
            { title: "Position", cell: (p) => count(p.position) },
            { title: "Shown", cell: (p) => count(p.shown) },
            { title: "Taken", cell: (p) => count(p.taken) },
            { title: "Share", cell: (p) => percent(p.taken / p.shown) },
            ...(x.positions.some((p) => p.effect !== null) ? [{ title: "Adds to the utility", cell: (p: Insight["positions"][number]) => number(p.effect) }] : []),
          ]}
        />
      </Card>
      <Card title="Calibration">
        <Table
          caption="Predicted and observed purchases"
          rows={x.calibration}
          empty="There are no predictions with outcomes yet."
          columns={[
            { title: "Predicted", cell: (b) => percent(b.predicted) },
            { title: "Observed", cell: (b) => percent(b.observed) },
            { title: "± if predictions are right", cell: (b) => percent(b.standard_error) },
            { title: "Decisions", cell: (b) => count(b.rounds) },
            { title: "", text: true, cell: (b) => (Math.abs(b.observed - b.predicted) > 3 * b.standard_error && b.rounds >= 30 ? <span class="warning">far off</span> : "") },
          ]}
        />
      </Card>
      <Drift of={x.drift} />
      <p class="note">As of {moment(x.time)}.</p>
    </>
  );
}

const duration = (seconds: number | undefined) => (seconds === undefined ? "–" : `${number(seconds * 1000, { maximumSignificantDigits: 2 })} ms`);

function Fact(props: { name: string; value: string }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}

function Items(props: { of: Insight }) {
  const [from, setFrom] = useState(0);
  const [contains, setContains] = useState("");
  const { items, others } = props.of;
  const matching = items.filter((i) => i.id.includes(contains));
  const rows = matching.slice(from, from + few);
  return (
    <Card title="Items">
      {items.length > few ? (
        <div class="controls">
          <label>Item <input type="search" placeholder="contains" value={contains} onInput={(e) => { setContains(e.currentTarget.value); setFrom(0); }} /></label>
          <button type="button" disabled={from === 0} onClick={() => setFrom(Math.max(from - few, 0))}>Previous</button>
          <span>{count(Math.min(from + 1, matching.length))} to {count(Math.min(from + few, matching.length))} of {count(matching.length)}</span>
          <button type="button" disabled={from + few >= matching.length} onClick={() => setFrom(from + few)}>Next</button>
        </div>
      ) : null}
      <Table
        caption="Items, those shown most first"
        rows={rows}
        empty={items.length > 0 ? `No item's id contains “${contains}”.` : "No decision has an outcome yet."}
        columns={[
          { title: "Item", text: true, cell: (i) => i.id },
          { title: "Shown", cell: (i) => count(i.shown) },
          { title: "Taken", cell: (i) => count(i.taken) },
          { title: "Share", cell: (i) => percent(i.taken / i.shown) },
          { title: "Earned", cell: (i) => number(i.revenue, { maximumFractionDigits: 2 }) },
          { title: "Utility", cell: (i) => spread(i.utility, i.sd) },
          { title: "Earns alone", cell: (i) => number(i.solo_revenue) },
        ]}
      />
      {others ? <p class="note">{count(props.of.others_count)} more items, which are not counted one by one any more, were shown {count(others.shown)} times, taken {count(others.taken)} times, and earned {number(others.revenue, { maximumFractionDigits: 2 })}.</p> : null}
      {items.length > 100 ? <p class="note">The 100 items that were shown most have a utility. “Earns alone” is the expected revenue of showing only that item.</p> : null}
    </Card>
  );
}

function EffectOf(props: { of: Effect }) {
  const { of: e } = props;
  if (e.kind === "category" || e.points.length < 2) {
    return (
      <section>
        <h3>{e.feature}</h3>
        <Table
          caption={`Effect of ${e.feature}`}
          rows={e.points}
          empty="No value has a column of its own yet."
          columns={[
            { title: "Value", text: true, cell: (p) => (typeof p.value === "number" ? number(p.value) : p.value) },
            { title: "Utility", cell: (p) => spread(p.utility, p.sd) },
          ]}
        />
      </section>
    );
  }
  const utilities = e.points.map((p) => p.utility);
  const bands = e.points.every((p) => p.sd !== null);
  return (
    <section>
      <h3>{e.feature}</h3>
      <Chart
        label={`Utility by ${e.feature}: from ${number(utilities[0])} at ${number(e.points[0]!.value as number)} to ${number(utilities[utilities.length - 1])} at ${number(e.points[e.points.length - 1]!.value as number)}`}
        times={e.points.map((p) => p.value as number)}
        lines={[{ label: "Utility", values: utilities, ...(bands ? { low: e.points.map((p) => p.utility - p.sd!), high: e.points.map((p) => p.utility + p.sd!) } : {}) }]}
        counts
        height={180}
      />
    </section>
  );
}

function Families(props: { of: NonNullable<Insight["families"]> }) {
  const learned = [...new Set(props.of.flatMap((f) => f.points.map((p) => p.learned)))].sort((a, b) => a - b);
  const last = learned[learned.length - 1]!;
  const families = props.of
    .map((f) => {
      const at = new Map(f.points.map((p) => [p.learned, p.weight]));
      return { family: f.family, at, now: at.get(last) ?? 0 };
    })
    .sort((a, b) => b.now - a.now);
  return (
    <Card title="Kinds of utility">
      <p class="note">The weights of the families of utilities that the policy averages, by what predicted best, since the service started.</p>
      {learned.length > 1 ? (
        <Chart label={`Weights of families by rounds learned; now ${families[0]!.family} has ${percent(families[0]!.now)}`} counts times={learned}
          lines={families.slice(0, 4).map((f) => ({ label: f.family, values: learned.map((l) => f.at.get(l) ?? 0) }))} />
      ) : null}
      <Table
        caption="Weights of families"
        rows={families}
        empty=""
        columns={[
          { title: "Family", text: true, cell: (f) => f.family },
          { title: "Weight", cell: (f) => percent(f.now) },
        ]}
      />
    </Card>
  );
}

// mean writes the mean revenue of a group with its standard error.
function mean(g: Totals): string {
  if (g.rounds === 0) return "–";
  const m = g.revenue / g.rounds;
  return g.rounds < 2 ? number(m) : `${number(m)} ± ${number(Math.sqrt(Math.max(g.revenue_squares - g.rounds * m * m, 0) / (g.rounds - 1) / g.rounds))}`;
}

function Drift(props: { of: Insight["drift"] }) {
  const drift = props.of;
  if (!drift) return <Card title="Drift"><Empty>There are no more than the last 1000 decisions to compare.</Empty></Card>;
  const rows = [{ when: `The last ${count(drift.recent.decisions)} decisions`, of: drift.recent }, { when: `${count(drift.before.decisions)} decisions before`, of: drift.before }];
  const some = (g: (s: Span) => Totals) => rows.some((r) => g(r.of).rounds > 0);
  type Row = (typeof rows)[number];
  return (
    <Card title="Drift">
      <Table
        caption="The last decisions and those before"
        rows={rows}
        empty=""
        columns={[
          { title: "", text: true, cell: (r) => r.when },
          { title: "Policy earns a decision", cell: (r) => mean(r.of.by_policy) },
          ...(some((s) => s.by_chance) ? [{ title: "Chance", cell: (r: Row) => mean(r.of.by_chance) }] : []),
          ...(some((s) => s.by_baseline) ? [{ title: "Baseline", cell: (r: Row) => mean(r.of.by_baseline) }] : []),
          { title: "Earned of what was predicted", cell: (r) => percent(r.of.predicted > 0 ? r.of.earned / r.of.predicted : NaN) },
        ]}
      />
      {drift.fell ? <p class="warning">The policy certainly sells less than four fifths as often as before.</p> : null}
    </Card>
  );
}
