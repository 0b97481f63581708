import { useState } from "preact/hooks";
import { Item, useProducts, type Product } from "./products";
import { Card, count, Empty, isolated, money, number, percent, plural, points, price, Table } from "./ui";

// The explanation of a decision: see Explanation of the OpenAPI document.
export interface Explanation {
  decision_id?: string;
  placement: string;
  source: "policy" | "chance" | "baseline" | "import";
  policy: string;
  policy_entry: number;
  explained_by_entry: number;
  same_policy: boolean;
  cause?: keyof typeof causes;
  candidates: number;
  known_candidates: number;
  shopper?: { feature: string; value: number | string | null }[];
  typical_shopper: boolean;
  attribution: "linear" | "shapley" | "none";
  items: Explained[];
  compared_by: "index" | "utility" | "none";
  revenue?: number;
  next_best?: { items: string[]; revenue: number; missed_by: number };
  rules?: Rule[];
  unknown?: string[];
  families?: { family: string; weight: number }[];
}

interface Rule {
  rule: string;
  item?: string;
  on?: string;
  cost: number;
}

interface Explained {
  id: string;
  slot?: string;
  position: number;
  revenue: number;
  choice_probability: number | null;
  utility: number | null;
  sd: number | null;
  index: number | null;
  family?: string;
  base?: number;
  contributions?: { feature: string; value?: number | string; utility: number }[];
}

export interface Answer {
  assortment: { id: string; position: number; choice_probability: number | null }[];
  outside_probability: number | null;
  expected_revenue: number | null;
  propensity: number | null;
  policy_entry: number;
  missing?: number;
  unmet?: { rule: string; on?: string; min: number; reached: number }[];
}

const causes = {
  bonus: "It was chosen as the page that could earn the most, with a bonus for items that Vitrine does not know well yet.",
  estimate: "It was chosen as the page that should earn the most.",
  draw: "Vitrine draws what shoppers may like from what it believes, and shows the best page for that: so it goes on learning.",
  slots: "For each place Vitrine draws what shoppers may like from what it believes, and takes the best item left: so it goes on learning.",
  weights: "It was drawn by lot, good pages more often.",
  chance: "It was drawn by lot.",
};

const found = { policy: "Vitrine chose this page.", chance: "This page was drawn by lot, for comparison.", baseline: "This is your own page.", import: "This page was shown by another program." };

// spread writes a value with its standard deviation.
export const spread = (value: number | null, sd: number | null) => (value === null ? "–" : sd === null ? number(value) : `${number(value)} ± ${number(sd)}`);

// Bar is a value as a bar from the middle, to the right if it is positive. most is the largest size of all values.
function Bar(props: { value: number; most: number }) {
  const width = props.most > 0 ? (Math.abs(props.value) / props.most) * 100 : 0;
  return (
    <svg class={props.value < 0 ? "bar less" : "bar"} viewBox="0 0 200 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="axis" x="99.5" y="0" width="1" height="10" />
      <rect x={props.value < 0 ? 100 - width : 100} y="1" width={width} height="8" />
    </svg>
  );
}

const signed = (value: number) => number(value, { maximumFractionDigits: 1, signDisplay: "exceptZero" });

// feature writes the value of a feature in words: "student", "age 20".
function feature(name: string, value: number | string | null | undefined): string {
  const words = name.replaceAll("_", " ");
  if (value === null || value === undefined) return words;
  return typeof value === "number" ? `${words} ${number(value, Math.abs(value) < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2, useGrouping: "min2" })}` : value.toLowerCase().includes(words.toLowerCase()) ? value : `${words}: ${value}`;
}

// Why shows who came, what was shown, why, and what would have changed it.
export function Why(props: { of: Explanation; answer?: Answer; currency?: string | undefined; taken?: string[] }) {
  const { of: x, currency } = props;
  const product = useProducts(x.placement, [...x.items.map((i) => i.id), ...(x.next_best?.items ?? []), ...(x.rules ?? []).flatMap((r) => (r.item ? [r.item] : []))]);
  const [chosen, choose] = useState<string>();
  const split = x.items.filter((i) => i.contributions !== undefined);
  const about = split.find((i) => i.id === chosen) ?? split[0];
  return (
    <div class="grid two">
      <Card title="Who came">
        {x.shopper && x.shopper.length > 0
          ? <ul class="chips">{x.shopper.map((f) => <li>{feature(f.feature, f.value)}</li>)}</ul>
          : <p class="quiet">Nothing is known of the shopper{x.shopper || !props.taken ? "" : ", or the log does not have it"}.</p>}
        <h2>What was shown, out of {plural(x.candidates, "candidate")}</h2>
        <Table
          caption="Items shown"
          rows={x.items}
          empty="Nothing is shown."
          columns={[
            { title: "Item", text: true, cell: (i) => <><Item of={product(i.id)} currency={currency}>{i.slot || props.taken?.includes(i.id) ? <>{i.slot ? `in ${i.slot} ` : null}{props.taken?.includes(i.id) ? <b class="good">bought</b> : null}</> : null}</Item><small class="narrow-only quiet">Earns {price(i.revenue, currency)} if bought</small></> },
            { title: "Chance to be bought", cell: (i) => points(i.choice_probability) },
            { title: "Earns if bought", cell: (i) => price(i.revenue, currency), wide: true },
            { title: "Reasons", plain: true, cell: (i) => (i.contributions ? <button type="button" aria-pressed={i === about} onClick={() => choose(i.id)}>Why?<span class="hidden"> {product(i.id).title}</span></button> : null) },
          ]}
        />
        {props.answer ? (
          <p class="quiet">
            {props.answer.outside_probability === null ? "" : `${points(props.answer.outside_probability)} of shoppers like this one buy nothing. `}
            {props.answer.expected_revenue === null ? "" : `The page is expected to earn ${money(props.answer.expected_revenue, currency)}.`}
            {props.answer.missing ? ` ${plural(props.answer.missing, "candidate")} could not be shown: unknown or not available.` : null}
            {props.answer.unmet?.map((u) => u.rule === "include" ? ` “${product(u.on!).title}” was asked for, but the placement excludes it.` : ` At least ${u.min} ${u.rule === "limit" ? `of ${u.on}` : "items"} were asked for: no page can show more than ${u.reached}.`)}
          </p>
        ) : null}
        <p class="quiet">{found[x.source]} {x.source === "policy" && x.cause ? causes[x.cause] : null}</p>
      </Card>
      <div class="column">
        {about ? <Reasons of={about} product={product(about.id)} most={Math.max(...about.contributions!.map((c) => Math.abs(c.utility)))} typical={x.typical_shopper} /> : null}
        <Card title="What would have changed it"><Others of={x} product={product} currency={currency} /></Card>
        <Technical of={x} />
      </div>
    </div>
  );
}

// Reasons says why an item was shown: what each feature adds, compared with a typical item and a typical visitor.
function Reasons(props: { of: Explained; product: Product; most: number; typical: boolean }) {
  const { of: item } = props;
  const few = item.contributions!.filter((c) => Math.abs(c.utility) >= 0.05).slice(0, 8);
  const rest = item.contributions!.filter((c) => !few.includes(c)).reduce((n, c) => n + c.utility, 0);
  const rows = [...few, ...(Math.abs(rest) >= 0.05 ? [{ feature: "all else", utility: rest }] : [])];
  return (
    <Card title={`Why “${props.product.title}”?`}>
      <Table
        caption={`What speaks for ${props.product.title}`}
        rows={rows as NonNullable<Explained["contributions"]>}
        empty="It is a typical item, and nothing speaks for or against it."
        columns={[
          { title: `Compared with a typical item for ${props.typical ? "a typical visitor" : "this visitor"}`, text: true, cell: (c) => feature(c.feature || "all else", c.value) },
          { title: "Points", plain: true, cell: (c) => signed(c.utility) },
          { title: "As a bar", plain: true, cell: (c) => <Bar value={c.utility} most={props.most} /> },
        ]}
      />
      <p class="quiet">Plus points raise the chance to be bought. One point multiplies the odds by 2.7.</p>
    </Card>
  );
}

// ruleWords names a rule for a merchandiser.
function ruleWords(r: Rule, product: (id: string) => Product): string {
  const item = r.item === undefined ? "" : `“${isolated(product(r.item).title)}”`;
  switch (r.rule) {
    case "max_size": return `“at most ${r.on} items”`;
    case "min_size": return `“at least ${r.on} items”`;
    case "include": return `the request's “must show ${item}”`;
    case "exclude": return `the request's “must not show ${item}”`;
    case "pinned": return `${item} pinned`;
    case "excluded": return `${item} excluded`;
    case "limit": return /^\d+$/.test(r.on ?? "") ? `the request's limit ${Number(r.on) + 1}` : `the limit on ${r.on}`;
    case "capacity": return `the capacity of ${r.on}`;
    case "slot": return `“${item} not in place ${r.on}”`;
  }
  return r.rule;
}

// whyNot says why a page was shown though another one should earn more.
function whyNot(x: Explanation): string {
  if (x.source === "chance") return ": this page was shown to compare with";
  if (x.source !== "policy") return "";
  return x.same_policy ? ": this page was shown to learn something" : ", by what Vitrine has learned since";
}

// Others says what each rule cost and what the next-best page is.
function Others(props: { of: Explanation; product: (id: string) => Product; currency: string | undefined }) {
  const { of: x, product, currency } = props;
  const shown = new Set(x.items.map((i) => i.id));
  const names = (ids: string[]) => ids.map((id) => `“${isolated(product(id).title)}”`).join(", ");
  const costly = (x.rules ?? []).filter((r) => r.cost > 1e-9).toSorted((a, b) => b.cost - a.cost);
  const free = (x.rules ?? []).length - costly.length;
  const next = x.next_best;
  let other = "";
  if (next) {
    const more = next.items.filter((i) => !shown.has(i)), less = x.items.map((i) => i.id).filter((i) => !next.items.includes(i));
    const how = next.items.length === 0 ? "is empty" : more.length === 0 ? `leaves out ${names(less)}` : less.length === 0 ? `also shows ${names(more)}` : `swaps ${names(less)} for ${names(more)}`;
    const size = Math.abs(next.missed_by);
    other = size < 1e-6 * (1 + Math.abs(next.revenue))
      ? `The next-best page ${how} and would earn as much.`
      : `The next-best page ${how} and would earn ${money(size, currency)} ${next.missed_by >= 0 ? "less" : `more${whyNot(x)}`}.`;
  }
  return (
    <>
      {costly.length > 0 ? <ul>{costly.map((r) => <li>Without {ruleWords(r, product)} the page would earn {money(r.cost, currency)} more.</li>)}</ul> : null}
      {free > 0 ? <p>{free === 1 && x.rules!.length === 1 ? `The rule ${ruleWords(x.rules![0]!, product)} costs nothing here.` : `${plural(free, costly.length > 0 ? "other rule costs" : "rule costs", costly.length > 0 ? "other rules cost" : "rules cost")} nothing here.`}</p> : null}
      {other ? <p>{other}</p> : null}
      {!other && x.rules === undefined && x.compared_by !== "none" && x.known_candidates === x.candidates ? <Empty>There is no other page, and no rule.</Empty> : null}
      {x.compared_by === "none" || x.known_candidates < x.candidates ? <Empty>Other pages are not known any more: the technical details say why.</Empty> : null}
    </>
  );
}

// Technical are the numbers behind.
function Technical(props: { of: Explanation }) {
  const { of: x } = props;
  const has = (f: (i: Explained) => unknown) => x.items.some((i) => f(i) !== null && f(i) !== undefined);
  return (
    <details class="card">
      <summary>Technical details</summary>
      <p class="quiet">
        Policy {x.policy}. {x.same_policy ? `The policy as of log entry ${count(x.policy_entry)} decided and explains.` : `The policy as of log entry ${count(x.policy_entry)} decided; the utilities are those of entry ${count(x.explained_by_entry)}.`}
        {" "}{x.attribution === "linear" ? "A feature adds its weight times the difference." : x.attribution === "shapley" ? "Features add what they do on average over orders (Shapley values)." : ""}
        {x.families?.length ? ` Families: ${x.families.filter((f) => f.weight >= 0.01).map((f) => `${f.family} ${percent(f.weight)}`).join(", ")}.` : ""}
      </p>
      {x.unknown && x.unknown.length > 0 ? <><h3>Not known</h3><ul>{x.unknown.map((u) => <li>{u}</li>)}</ul></> : null}
      <Table
        caption="Utilities of the items shown"
        rows={x.items}
        empty="Nothing is shown."
        columns={[
          { title: "Item", text: true, cell: (i) => <span class="id">{i.id}</span> },
          { title: "Utility", cell: (i) => spread(i.utility, i.sd) },
          ...(has((i) => i.index) ? [{ title: x.cause === "bonus" ? "With bonus" : x.cause === "estimate" ? "Chosen by" : "As drawn", cell: (i: Explained) => number(i.index) }] : []),
          ...(has((i) => i.family) ? [{ title: "Kind of utility", text: true, cell: (i: Explained) => i.family }] : []),
        ]}
      />
    </details>
  );
}
