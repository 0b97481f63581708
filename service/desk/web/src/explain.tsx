import { Card, count, Empty, number, percent, Table } from "./ui";

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
  attribution: "linear" | "shapley" | "none";
  items: Explained[];
  compared_by: "index" | "utility" | "none";
  revenue?: number;
  next_best?: { items: string[]; revenue: number; missed_by: number };
  rules?: { rule: string; item?: string; on?: string; cost: number }[];
  unknown?: string[];
  families?: { family: string; weight: number }[];
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
  bonus: "It shows the best set under utilities with a bonus for what it does not know yet.",
  estimate: "It shows the best set under its estimated utilities.",
  draw: "It draws utilities from what it believes, and shows the best set under them.",
  slots: "For each slot it draws a kind of utility and its parameters, and takes the best item left.",
  weights: "It draws a set, good ones more often.",
  chance: "It draws a set by chance.",
};

const found = { policy: "by the policy", chance: "by chance", baseline: "by the caller", import: "in another program" };

const rules: Record<string, (r: { item?: string; on?: string }) => string> = {
  max_size: (r) => `At most ${r.on} items`,
  min_size: (r) => `At least ${r.on} items`,
  include: (r) => `Must show ${r.item}`,
  exclude: (r) => `Must not show ${r.item}`,
  limit: (r) => `Limit ${r.on}`,
  capacity: (r) => `Capacity of ${r.on}`,
  slot: (r) => `${r.item} not in slot ${r.on}`,
};

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

const signed = (value: number) => number(value, { maximumFractionDigits: 3, signDisplay: "exceptZero" });

// Shares splits the utility of an item among its features.
function Shares(props: { of: Explained; most: number; base: string }) {
  const { of: item } = props;
  const label = (c: { feature: string; value?: number | string }) =>
    c.feature === "" ? "all other features" : c.value === undefined ? c.feature : `${c.feature} = ${typeof c.value === "number" ? number(c.value) : c.value}`;
  const features = item.contributions!.map((c) => ({ label: <>{label(c)}</>, value: <>{signed(c.utility)}</>, bar: <Bar value={c.utility} most={props.most} /> }));
  return (
    <section>
      <h3 class="id">{item.id}</h3>
      <Table
        caption={`Utility of ${item.id} by feature`}
        rows={[{ label: <>{props.base}</>, value: <>{number(item.base)}</>, bar: null }, ...features, { label: <strong>utility</strong>, value: <strong>{number(item.utility)}</strong>, bar: null }]}
        empty=""
        columns={[
          { title: "Feature", text: true, cell: (r) => r.label },
          { title: "Adds", cell: (r) => r.value },
          { title: "", cell: (r) => r.bar },
        ]}
      />
    </section>
  );
}

// Why shows an explanation.
export function Why(props: { of: Explanation; answer?: Answer }) {
  const { of: x } = props;
  const split = x.items.filter((i) => i.contributions !== undefined);
  const most = Math.max(0, ...split.flatMap((i) => i.contributions!.map((c) => Math.abs(c.utility))));
  const has = (f: (i: Explained) => unknown) => x.items.some((i) => f(i) !== null && f(i) !== undefined);
  const shown = new Set(x.items.map((i) => i.id));
  const other = x.next_best && { more: x.next_best.items.filter((i) => !shown.has(i)), less: x.items.filter((i) => !x.next_best!.items.includes(i.id)).map((i) => i.id) };
  return (
    <>
      <Card title="What is shown">
        <p>
          Found {found[x.source]}, among {number(x.candidates)} candidates. {x.source === "policy" && x.cause ? causes[x.cause] : null}{" "}
          {x.same_policy ? `Policy ${x.policy}, version ${count(x.policy_entry)}.` : `Version ${count(x.policy_entry)} of the policy decided; the utilities are those of version ${count(x.explained_by_entry)} of ${x.policy}.`}
        </p>
        <Table
          caption="Items shown"
          rows={x.items}
          empty="Nothing is shown."
          columns={[
            { title: "Item", text: true, cell: (i) => i.id },
            ...(has((i) => i.slot) ? [{ title: "Slot", text: true, cell: (i: Explained) => i.slot }] : []),
            { title: "Is taken", cell: (i) => percent(i.choice_probability) },
            { title: "Revenue", cell: (i) => number(i.revenue) },
            ...(has((i) => i.utility) ? [{ title: "Utility", cell: (i: Explained) => spread(i.utility, i.sd) }] : []),
            ...(has((i) => i.index)
              ? [
                  { title: x.cause === "bonus" ? "With bonus" : x.cause === "estimate" ? "Chosen by" : "As drawn", cell: (i: Explained) => number(i.index) },
                  { title: "Difference", cell: (i: Explained) => (i.index === null || i.utility === null ? "–" : signed(i.index - i.utility)) },
                ]
              : []),
            ...(has((i) => i.family) ? [{ title: "Kind of utility", text: true, cell: (i: Explained) => i.family }] : []),
          ]}
        />
        {props.answer ? (
          <p class="note">
            Nothing is taken with a probability of {percent(props.answer.outside_probability)}. Expected revenue {number(props.answer.expected_revenue)}.
            {props.answer.missing ? ` ${props.answer.missing} candidates are unknown or not available.` : null}
            {props.answer.unmet?.map((u) => ` At least ${u.min} ${u.rule === "limit" ? `of limit ${u.on}` : "items"}: no page can show more than ${u.reached}.`)}
          </p>
        ) : null}
      </Card>
      {split.length > 0 ? (
        <Card title="Utility by feature">
          <p class="note">
            {x.attribution === "linear"
              ? "Weight times value of each feature."
              : "What each feature adds on average when it takes its value, beside a mean candidate (Shapley values, from a fixed sample of orders)."}
          </p>
          <div class="charts">{split.map((i) => <Shares key={i.id} of={i} most={most} base={x.attribution === "linear" ? "to begin with" : "a mean candidate"} />)}</div>
        </Card>
      ) : null}
      <Card title="What else could be shown">
        {x.next_best && other ? (
          <p>
            The best other set{" "}
            {x.next_best.items.length === 0 ? "is empty" : other.more.length === 0 ? <>lacks <strong class="id">{other.less.join(", ")}</strong></> : <>has <strong class="id">{other.more.join(", ")}</strong>{other.less.length > 0 ? <> in the place of <strong class="id">{other.less.join(", ")}</strong></> : " too"}</>}.
            {" "}By the {x.compared_by === "index" ? "utilities by which the policy chose" : "mean utilities"} it would earn {number(x.next_best.revenue)}, and the set shown {number(x.revenue)}
            {x.next_best.missed_by >= 0 ? "." : ", because that was drawn."}
          </p>
        ) : x.compared_by !== "none" && x.known_candidates === x.candidates ? <Empty>There is no other set.</Empty> : null}
        {x.rules && x.rules.length > 0 ? (
          <Table
            caption="What rules cost"
            rows={x.rules}
            empty=""
            columns={[
              { title: "Rule", text: true, cell: (r) => (rules[r.rule] ?? (() => r.rule))(r) },
              { title: "Costs a decision", cell: (r) => number(r.cost) },
            ]}
          />
        ) : x.compared_by !== "none" && x.known_candidates === x.candidates ? <Empty>No rule restricts the set.</Empty> : null}
        {x.unknown && x.unknown.length > 0 ? (
          <>
            <h3>Not known</h3>
            <ul>{x.unknown.map((u) => <li>{u}</li>)}</ul>
          </>
        ) : null}
      </Card>
    </>
  );
}
