import { Chart } from "./chart";
import { useInsight, type Insight, type Span } from "./insight";
import type { Totals } from "./series";
import { Card, count, Empty, Failure, Loading, moment, number, percent, plural, Table } from "./ui";

// Details are what an engineer wants to know of a placement.
export default function Details(props: { name: string }) {
  const { value: x, failure } = useInsight(props.name);
  if (!x) return failure ? <Failure of={failure} /> : <Loading />;
  const facts: [string, string][] = [
    ["Policy", x.policy], ["Mode", x.mode], ["Policy entry", count(x.policy_entry)], ["Drawn by chance", percent(x.exploration_share)],
    ["Learner is behind by", plural(x.lag_rounds, "outcome")], ["Waiting for the log", plural(x.waiting_requests, "request")],
  ];
  return (
    <>
      <Card title="State">
        <dl class="facts">{facts.map(([name, value]) => <div><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
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
            { title: "Bought", cell: (p) => count(p.taken) },
            { title: "Share", cell: (p) => percent(p.taken / p.shown) },
            ...(x.positions.some((p) => p.effect !== null) ? [{ title: "Adds to the utility", cell: (p: Insight["positions"][number]) => number(p.effect) }] : []),
          ]}
        />
      </Card>
      <Drift of={x.drift} />
      <p class="quiet">As of {moment(x.time)}. Base URI for clients of Azure Personalizer: <code>{new URL(`v1/placements/${encodeURIComponent(props.name)}/personalizer/v1.0`, document.baseURI.split("#")[0]).href}</code></p>
    </>
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
  const some = families.filter((f) => f.now >= 0.001);
  return (
    <Card title="Kinds of utility">
      <p class="note">The weights of the families of utilities that the policy averages, by what predicted best, since the service started.</p>
      {learned.length > 1 ? (
        <Chart label={`Weights of families by rounds learned; now ${families[0]!.family} has ${percent(families[0]!.now)}`} counts times={learned} top={1} format={percent}
          lines={families.slice(0, 4).map((f) => ({ label: f.family, values: learned.map((l) => f.at.get(l) ?? 0) }))} />
      ) : null}
      <Table
        caption="Weights of families"
        rows={some}
        empty=""
        columns={[
          { title: "Family", text: true, cell: (f) => f.family },
          { title: "Weight", cell: (f) => percent(f.now) },
        ]}
      />
      {some.length < families.length ? <p class="quiet">{count(families.length - some.length)} more weigh less than 0.1% each.</p> : null}
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
  if (!drift) return <Card title="Drift"><Empty>Drift compares the last 1,000 decisions or more with those before. Too few have ended.</Empty></Card>;
  const rows = [{ when: `The last ${plural(drift.recent.decisions, "decision")}`, of: drift.recent }, { when: `${plural(drift.before.decisions, "decision")} before`, of: drift.before }];
  const some = (g: (s: Span) => Totals) => rows.some((r) => g(r.of).rounds > 0);
  type Row = (typeof rows)[number];
  return (
    <Card title="Drift">
      <Table
        caption="The last decisions and those before"
        rows={rows}
        empty=""
        columns={[
          { title: "When", plain: true, text: true, cell: (r) => r.when },
          { title: "Policy earns per visit", cell: (r) => mean(r.of.by_policy) },
          ...(some((s) => s.by_chance) ? [{ title: "Random pages", cell: (r: Row) => mean(r.of.by_chance) }] : []),
          ...(some((s) => s.by_baseline) ? [{ title: "Your own pages", cell: (r: Row) => mean(r.of.by_baseline) }] : []),
          { title: "Earned of what was predicted", cell: (r) => percent(r.of.predicted > 0 ? r.of.earned / r.of.predicted : NaN) },
        ]}
      />
    </Card>
  );
}
