import { Chart } from "./chart";
import { byReach, reach, slight, useInsight, wish, type Effect, type Insight } from "./insight";
import { address } from "./address";
import { Card, count, Empty, Failure, Loading, number, points, price, short, Table } from "./ui";

// writer writes values of a feature, prices in the placement's currency, with the digits that tell its values apart: 1985 from 1990.
export function writer(e: Effect, currency: string | undefined): (v: number) => string {
  const values = e.points.map((p) => Number(p.value));
  const span = Math.max(...values) - Math.min(...values);
  const digits = span > 0 ? 2 + Math.min(Math.max(Math.round(Math.log10(Math.max(...values.map(Math.abs)) / span)), 0), 13) : 3;
  if (/price|cost/i.test(e.feature) && currency) return (v) => price(Number(v.toPrecision(digits)), currency, short);
  return (v) => number(v, { maximumSignificantDigits: digits, useGrouping: "min2" });
}

// Taste is the effect that matters most, for a page about something else.
export default function Taste(props: { name: string; currency?: string | undefined }) {
  const { value, failure } = useInsight(props.name);
  const effects = byReach(value?.effects ?? []);
  const first = effects.find(isCurve) ?? effects[0];
  return (
    <Card title={first ? `What shoppers like: ${first.feature}` : "What shoppers like"} end={<a class="button" href={address("placements", props.name, "tastes")}>All tastes</a>}>
      {failure ? <Failure of={failure} /> : null}
      {first ? <Effects of={first} currency={props.currency} /> : value ? <NoTastes of={value} /> : <Loading />}
    </Card>
  );
}

const isCurve = (e: Effect) => e.kind === "number" && e.points.length > 1;

// Effects are the shares that would buy an item by one of its values.
export function Effects(props: { of: Effect; currency?: string | undefined }) {
  return isCurve(props.of) ? <Curves {...props} /> : <Values of={props.of} />;
}

// NoTastes says why tastes are unknown.
export function NoTastes(props: { of: Insight }) {
  return <Empty>{props.of.policy === "uniform" ? "Random pages learn nothing about tastes." : "Nothing is known about tastes yet: they show once items shown have outcomes, for numbers and categories."}</Empty>;
}

// Curves are the share that would buy an item by one of its numbers, for each segment if segments differ.
function Curves(props: { of: Effect; currency?: string | undefined }) {
  const { of: e } = props;
  const write = writer(e, props.currency);
  const segments = (e.segments ?? []).slice(0, 4);
  const lines = segments.length > 1
    ? segments.map((s) => ({ label: s.value, values: s.points.map((p) => p.buy_share) }))
    : [{ label: "all shoppers", values: e.points.map((p) => p.buy_share), low: e.points.map((p) => p.buy_share_low ?? null), high: e.points.map((p) => p.buy_share_high ?? null) }];
  const wishes = segments.length > 1
    ? segments.map((s) => ({ who: s.value, what: wish(s.points, write) }))
    : [{ who: "", what: wish(e.points, write) }];
  const looks = wishes.filter((w) => w.what);
  const said = reach(e) < slight ? "It hardly matters." : looks.length === 0 ? "" : `Sells best${looks[0]!.who ? ":" : ""} ${looks.map((w) => (w.who ? `${w.who} ${w.what}` : w.what)).join(", ")}.`;
  const title = `Share who would buy a typical item, by ${e.feature}${segments.length > 1 ? ` and ${e.by}` : ""}.`;
  return (
    <>
      <Chart label={`${title} ${said}`} counts times={e.points.map((p) => p.value as number)} lines={lines} height={190} top={0.1} format={points} at={write} curved />
      <p class="quiet">{title} {said}{segments.length > 1 ? "" : " The band is one standard deviation."}</p>
    </>
  );
}

const few = 10; // values of a category that are in sight

// Values are the shares that would buy an item by one of its names, the best first.
function Values(props: { of: Effect }) {
  const { of: e } = props;
  const segments = e.segments ?? [];
  const rows = e.points.map((p, i) => ({ ...p, i })).sort((a, b) => b.buy_share - a.buy_share);
  const table = (of: typeof rows) => (
    <Table
      caption={`Share who would buy, by ${e.feature}`}
      rows={of}
      empty="No value has enough outcomes of its own yet."
      columns={[
        { title: e.feature, text: true, cell: (p) => <bdi>{p.value}</bdi> },
        { title: "Would buy", cell: (p) => points(p.buy_share) },
        ...(segments.length > 1 ? segments.map((s) => ({ title: s.value, cell: (p: (typeof rows)[number]) => points(s.points[p.i]?.buy_share), wide: segments.length > 3 })) : []),
        { title: "Likely between", cell: (p) => (p.buy_share_low === undefined ? "–" : `${points(p.buy_share_low)} and ${points(p.buy_share_high)}`), wide: true },
      ]}
    />
  );
  return (
    <>
      {table(rows.slice(0, few))}
      {reach(e) < slight ? <p class="quiet">It hardly matters which.</p> : null}
      {rows.length > few ? <details><summary>{count(rows.length - few)} more</summary>{table(rows.slice(few))}</details> : null}
    </>
  );
}
