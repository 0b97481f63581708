import { useEffect, useState } from "preact/hooks";
import { get, request } from "../api";
import { Chart } from "../chart";
import { usePoll } from "../poll";
import { Card, count, Empty, Failure, Loading, number, percent, plural, Table } from "../ui";
import "./shop.css";

interface Product {
  id: string;
  title: string;
  price: number;
}

interface Catalogue {
  products: Product[];
  kinds: string[];
  max_speed: number;
}

interface Window {
  placement: string;
  shown: string[];
  taken?: string;
}

interface Total {
  placement: string;
  shoppers: number;
  sales: number;
  earned: number;
  estimated: number;
  predicted: number;
  more: number;
  squares: number;
}

interface State {
  open: boolean;
  speed: number;
  real: number;
  half: number;
  last: { round: number; kind: string; windows: Window[] } | null;
  totals?: Total[];
  curves: { width: number; rounds: number[]; optimum: number[]; worth: number[][] };
}

interface Belief {
  items: { id: string; probability: number | null; utility: number | null; sd: number | null }[];
  outside_probability: number | null;
  learned: number;
}

interface Visit {
  decision: string;
  kind: string;
  before: Belief;
}

interface Lesson {
  taken: string;
  learned: boolean;
  after: Belief;
  next: string[];
}

const does: Record<string, string> = {
  auto: "learns tastes of any form",
  linear: "learns straight lines only",
  chance: "draws its products, learns nothing",
};

const euros = (value: number | null | undefined) => number(value, { style: "currency", currency: "EUR" });
const utility = (value: number | null) => number(value, { minimumFractionDigits: 3, maximumFractionDigits: 3, signDisplay: "exceptZero" });
const chance = (value: number | null) => number(value, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
const sure = (of: { utility: number | null; sd: number | null }) => utility(of.utility) + (of.sd === null ? "" : ` ± ${number(of.sd, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`);

export default function Shop() {
  const [shop, open] = useState<Catalogue>();
  const [failure, fail] = useState<unknown>();
  useEffect(() => {
    get<Catalogue>("demo/shop").then(open, fail);
  }, []);
  const { value: state, failure: late } = usePoll((signal) => get<State>("demo/state", signal), "");
  if (failure) return <Failure of={failure} />;
  if (!shop || !state) return late ? <Failure of={late} /> : <Loading />;
  return (
    <>
      {late ? <Failure of={late} /> : null}
      <p class="lead">
        Shoppers of {shop.kinds.length} kinds come to a shop of {shop.products.length} vases. Each sees three windows of at most four vases, and takes one or none from each.
        Nobody tells the windows what a kind likes, and fashion changes after each {plural(state.half, "shopper")}.
      </p>
      <div class="pair">
        <Windows shop={shop} state={state} />
        <Visitor shop={shop} />
      </div>
      <Speed state={state} max={shop.max_speed} />
      <Curves state={state} />
      <Totals totals={state.totals ?? []} />
    </>
  );
}

const productOf = (shop: Catalogue, id: string) => shop.products.find((p) => p.id === id) ?? { id, title: id, price: NaN };

function Picture(props: { of: Product }) {
  return <img src={`demo/pictures/${encodeURIComponent(props.of.id)}.svg`} alt={`${props.of.title}, ${euros(props.of.price)}`} title={props.of.title} width="96" height="120" />;
}

function Windows(props: { shop: Catalogue; state: State }) {
  const last = props.state.last;
  return (
    <Card title="The latest shopper">
      {last === null ? <Empty>Nobody has come yet.</Empty> : (
        <>
          <p>Shopper {count(last.round)}, a {last.kind}.</p>
          {last.windows.map((w) => (
            <section class="window" aria-label={w.placement}>
              <h3>{w.placement} <small>{does[w.placement]}</small></h3>
              <ul class="vases">
                {w.shown.map((id) => (
                  <li class={id === w.taken ? "taken" : ""}>
                    <Picture of={productOf(props.shop, id)} />
                    <span>{id === w.taken ? "taken" : " "}</span>
                  </li>
                ))}
              </ul>
            </section>
          ))}
        </>
      )}
    </Card>
  );
}

// The slider is logarithmic: ten steps are a factor of ten.
const speedOf = (step: number) => Math.round(10 ** (step / 10));
const stepOf = (speed: number) => Math.round(10 * Math.log10(Math.max(speed, 1)));

function Speed(props: { state: State; max: number }) {
  const [step, move] = useState<number>(); // while the slider is moved
  const [failure, fail] = useState<unknown>();
  const set = (speed: number) => request("PUT", "demo/speed", { body: { speed } }).then(() => fail(undefined), fail).finally(() => move(undefined));
  const { speed, real, open } = props.state;
  const wanted = step === undefined ? speed : speedOf(step);
  const slow = open && wanted === speed && real < 0.9 * speed;
  return (
    <Card title="Speed">
      <div class="speed">
        <label for="speed">Times real time, in which one shopper comes a second</label>
        <input id="speed" type="range" min={0} max={stepOf(props.max)} value={step ?? stepOf(speed)} aria-valuetext={plural(wanted, "time")}
          onInput={(e) => move(Number(e.currentTarget.value))} onChange={(e) => set(speedOf(Number(e.currentTarget.value)))} />
        <output for="speed">{count(wanted)}×</output>
        {speed === 0 ? <button type="button" onClick={() => set(50)}>Continue</button> : <button type="button" onClick={() => set(0)}>Pause</button>}
      </div>
      <p class={slow ? "slow" : ""}>
        {!open ? "The shop is closed." : speed === 0 ? "The door is closed: only you can come in." : slow ? `Now ${number(real, { maximumFractionDigits: 1 })} shoppers come a second: this machine is not quicker, or the speed has just changed.` : `Now ${number(real, { maximumFractionDigits: 1 })} shoppers come a second.`}
      </p>
      {failure ? <Failure of={failure} /> : null}
    </Card>
  );
}

function Curves(props: { state: State }) {
  const { curves, half, totals } = props.state;
  const end = curves.rounds.at(-1) ?? 0;
  const marks: number[] = [];
  for (let at = half; at < end; at += half) if (at >= curves.rounds[0]!) marks.push(at);
  return (
    <Card title="What a window is worth">
      {curves.rounds.length < 2 ? <Empty>The curves begin after some dozens of shoppers.</Empty> : (
        <>
          <Chart label="Expected revenue of a window over shoppers, for each placement and the best window" counts times={curves.rounds} marks={marks}
            lines={[...(totals ?? []).map((t, k) => ({ label: t.placement, values: curves.worth[k]! })), { label: "best possible", values: curves.optimum }]} height={260} />
          <p class="empty">Euros that a shopper is expected to leave, by the true tastes, over shoppers; mean of {plural(curves.width, "shopper")} a point.{marks.length ? " The dashed lines are changes of fashion." : ""}</p>
        </>
      )}
    </Card>
  );
}

function Totals(props: { totals: Total[] }) {
  const more = (t: Total) => {
    const mean = t.more / t.shoppers;
    const error = Math.sqrt(Math.max(t.squares / t.shoppers - mean * mean, 0) / (t.shoppers - 1));
    return t.placement === "chance" ? "–" : `${euros(mean)} ± ${euros(error)}`;
  };
  return (
    <Card title="Earned">
      <Table
        caption="What each placement has earned since the demonstration was started"
        rows={props.totals.filter((t) => t.shoppers > 0)}
        empty="Nobody has come yet."
        columns={[
          { title: "Placement", cell: (t) => t.placement, text: true },
          { title: "Shoppers", cell: (t) => count(t.shoppers), wide: true },
          { title: "Bought", cell: (t) => percent(t.sales / t.shoppers), wide: true },
          { title: "A shopper", cell: (t) => euros(t.earned / t.shoppers) },
          { title: "More than chance, same shoppers", cell: more },
          { title: "Earned of what was predicted", cell: (t) => (t.predicted > 0 ? percent(t.estimated / t.predicted) : "–"), wide: true },
        ]}
      />
      <p class="empty">± is one standard error. The placements serve the same shoppers, so that their difference is known well.</p>
    </Card>
  );
}

function Visitor(props: { shop: Catalogue }) {
  const { shop } = props;
  const [kind, become] = useState(shop.kinds[0]!);
  const [visit, enter] = useState<Visit>();
  const [lesson, learn] = useState<Lesson>();
  const [busy, wait] = useState(false);
  const [failure, fail] = useState<unknown>();
  const attempt = (work: Promise<void>) => {
    wait(true);
    work.then(() => fail(undefined), fail).finally(() => wait(false));
  };
  const come = () => attempt(request<Visit>("POST", "demo/visits", { body: { kind } }).then((v) => {
    learn(undefined);
    enter(v);
  }));
  const take = (taken: string) => attempt(request<Lesson>("POST", `demo/visits/${encodeURIComponent(visit!.decision)}`, { body: { taken } }).then((l) => learn(l)));
  return (
    <Card title="Be a shopper">
      <form class="speed" onSubmit={(e) => { e.preventDefault(); come(); }}>
        <label for="kind">You are a</label>
        <select id="kind" value={kind} onChange={(e) => become(e.currentTarget.value)}>
          {shop.kinds.map((k) => <option value={k}>{k}</option>)}
        </select>
        <button type="submit" class={visit && !lesson ? "" : "main"} disabled={busy}>{visit ? "Come again" : "Come in"}</button>
      </form>
      {failure ? <Failure of={failure} /> : null}
      {visit ? null : <Empty>Come in, take a vase that you like or walk away, and see what auto learns from you.</Empty>}
      {visit && !lesson ? (
        <>
          <p>What <b>auto</b> shows you. Take a vase, or walk away.</p>
          <ul class="vases">
            {visit.before.items.map((item) => (
              <li><button type="button" class="vase" disabled={busy} onClick={() => take(item.id)}><Picture of={productOf(shop, item.id)} /></button></li>
            ))}
          </ul>
          <p><button type="button" disabled={busy} onClick={() => take("")}>Walk away</button></p>
        </>
      ) : null}
      <div aria-live="polite">{visit && lesson ? <Learned shop={shop} visit={visit} lesson={lesson} /> : null}</div>
    </Card>
  );
}

function Learned(props: { shop: Catalogue; visit: Visit; lesson: Lesson }) {
  const { shop, visit, lesson } = props;
  const rows = visit.before.items.map((before, k) => ({ before, after: lesson.after.items[k]! }));
  const moved = (a: number | null, b: number | null) => (a === null || b === null ? "–" : utility(b - a));
  return (
    <>
      <p>
        You took {lesson.taken ? <b>{productOf(shop, lesson.taken).title}</b> : <b>nothing</b>}.{" "}
        {lesson.learned ? `auto has learned from it, and from ${count(lesson.after.learned - 1)} other shoppers.` : "auto has not learned from it yet: its learner lags."}
      </p>
      <Table
        caption="What auto believes of the vases that it showed you, before and after your choice"
        rows={rows}
        empty=""
        columns={[
          { title: "Vase", cell: (r) => productOf(shop, r.before.id).title + (r.before.id === lesson.taken ? " (yours)" : ""), text: true },
          { title: "Utility before", cell: (r) => utility(r.before.utility), wide: true },
          { title: "Utility after", cell: (r) => sure(r.after) },
          { title: "Moved", cell: (r) => moved(r.before.utility, r.after.utility) },
          { title: "Taken before", cell: (r) => chance(r.before.probability), wide: true },
          { title: "Taken after", cell: (r) => chance(r.after.probability) },
        ]}
      />
      <p class="empty">
        Nothing taken from this window: {chance(visit.before.outside_probability)} before, {chance(lesson.after.outside_probability)} after.
        The first shoppers move them far. After thousands, one more moves them little: start the demonstration again to teach it yourself.
      </p>
      <p>To a {visit.kind} it would show now:</p>
      <ul class="vases">{lesson.next.map((id) => <li><Picture of={productOf(shop, id)} /></li>)}</ul>
    </>
  );
}
