import { runs } from "../chart";
import { byReach, useInsight, type Effect, type Insight } from "../insight";
import { useCurrency } from "../products";
import { Effects, NoTastes, writer } from "../taste";
import { Card, count, Empty, Failure, Loading, percent, plural, Table } from "../ui";

// Tastes is what the placement has learned about its shoppers, and how sure it is.
export default function Tastes(props: { name: string }) {
  const { value: x, failure } = useInsight(props.name);
  const currency = useCurrency(props.name);
  if (!x) return failure ? <Failure of={failure} /> : <Loading />;
  const effects = byReach(x.effects ?? []);
  return (
    <>
      {failure ? <Failure of={failure} /> : null}
      {effects.length === 0 ? <NoTastes of={x} /> : <p class="quiet">What matters most comes first. Each is the share of shoppers who would buy a typical item if it were the only one on the page.</p>}
      <div class="grid halves">
        {effects.map((e) => (
          <Card key={e.feature} title={e.feature}>
            <Effects of={e} currency={currency} />
          </Card>
        ))}
      </div>
      {effects.length > 0 ? <Unsure of={effects} currency={currency} /> : null}
      <Fit of={x} />
    </>
  );
}

const vague = 0.3; // a share that may be anywhere in a range as wide as this says little

// Unsure says in words where the model knows little.
function Unsure(props: { of: Effect[]; currency: string | undefined }) {
  const said: string[] = [];
  for (const e of props.of) {
    const open = e.points.filter((p) => (p.buy_share_high ?? 0) - (p.buy_share_low ?? 0) > vague);
    if (open.length === 0) continue;
    const write = (v: number | string) => (typeof v === "number" ? writer(e, props.currency)(v) : v);
    if (open.length === e.points.length) said.push(`${e.feature}: not sure about any value yet.`);
    else if (e.kind === "category") said.push(`${e.feature}: not sure about ${open.slice(0, 5).map((p) => write(p.value)).join(", ")}${open.length > 5 ? ` and ${count(open.length - 5)} more` : ""}, which few shoppers have seen.`);
    else said.push(`${e.feature}: not sure ${runs(e.points.map((p) => open.includes(p))).map((r) => whereOf(r.map((k) => write(e.points[k]!.value)), r[0] === 0, r.includes(e.points.length - 1))).join(" and ")}, where few items were shown.`);
  }
  return (
    <Card title="Where it is not sure">
      {said.length === 0 ? <p>Nowhere much: each share above is likely right to within {count(50 * vague)} percentage points.</p> : <ul>{said.map((s) => <li>{s}</li>)}</ul>}
    </Card>
  );
}

// whereOf names the part of a scale that some of its points cover.
function whereOf(values: string[], fromBelow: boolean, toTop: boolean): string {
  const [first, last] = [values[0]!, values[values.length - 1]!];
  if (fromBelow) return `up to ${last}`;
  if (toTop) return `from ${first} on`;
  return first === last ? `near ${first}` : `between ${first} and ${last}`;
}

// Fit says in words whether predictions come true.
function Fit(props: { of: Insight }) {
  const bins = props.of.calibration;
  const rounds = bins.reduce((n, b) => n + b.rounds, 0);
  const foreseen = bins.reduce((n, b) => n + b.rounds * b.predicted, 0);
  const bought = bins.reduce((n, b) => n + b.rounds * b.observed, 0);
  const off = bins.filter((b) => b.rounds >= 30 && Math.abs(b.observed - b.predicted) > 3 * b.standard_error);
  return (
    <Card title="Do its predictions come true?">
      {rounds === 0 ? <Empty>No visit with a prediction has its outcome yet.</Empty> : (
        <>
          <p>Of {plural(rounds, "visit")}, {count(foreseen)} were expected to buy and {count(bought)} did.{" "}
            {off.length === 0 ? "No group of visits differs by more than chance explains." : off.map((b) => `Where ${percent(b.predicted)} should have bought, ${percent(b.observed)} did.`).join(" ")}
            {off.length > 0 ? " A feature may be missing, tastes may have changed, or these visits came before it had learned much." : ""}</p>
          <details>
            <summary>By how likely a purchase was</summary>
            <Table
              caption="Expected and observed purchases"
              rows={bins}
              empty=""
              columns={[
                { title: "Expected to buy", cell: (b) => percent(b.predicted) },
                { title: "Bought", cell: (b) => percent(b.observed) },
                { title: "± by chance", cell: (b) => percent(b.standard_error), wide: true },
                { title: "Visits", cell: (b) => count(b.rounds) },
              ]}
            />
          </details>
        </>
      )}
    </Card>
  );
}
