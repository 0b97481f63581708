import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { adjust } from "../adjust";
import { Command } from "../command";
import { get, placement, request } from "../api";
import { usePoll } from "../poll";
import { Item, productOf, type Shelf, type ShelfItem } from "../products";
import { Relearning } from "../relearning";
import { push } from "../samples";
import { SessionContext, useMay } from "../session";
import type { Insight } from "../insight";
import { Card, count, Empty, Failure, Loading, moment, money, number, percent, plural } from "../ui";

const filters: [string, string][] = [["All", ""], ["Can be shown", "available"], ["Cannot be shown", "unavailable"], ["Shown", "shown"], ["Never shown", "unseen"], ["Pinned", "pinned"], ["Excluded", "excluded"]];
const orders: [string, string][] = [["Earns the most per page", "earned"], ["Shown most", "shown"], ["Catalogue", ""]];
const part = 100; // items of a request
const tallest = 20_000_000; // pixels: browsers cut what is much taller

interface Feature {
  name: string;
  kind: string;
  from?: string;
  history?: string;
  values?: string[];
  default?: unknown;
}

interface Config {
  currency?: string;
  include?: string[];
  exclude?: string[];
  features: Feature[];
  catalogue_of?: string;
}

// Place is where an item is in the lists of pinned and of excluded items, -1 if it is not in one.
interface Place {
  id: string;
  pin: number;
  exclude: number;
}

const indexIn = (list: string[] | undefined, id: string) => list?.indexOf(id) ?? -1;

// placed moves an item within the lists, and leaves the other items where they are.
const placed = (id: string, pin: number, exclude: number) => (c: Record<string, any>) => {
  if (pin === Infinity && c["include"]?.length >= c["max_size"]) throw new Error(`${plural(c["max_size"], "item is", "items are")} pinned already, and a page shows no more. Unpin one first.`);
  const move = (list: string[] = [], at: number) => {
    const rest = list.filter((o) => o !== id);
    if (at >= 0) rest.splice(at, 0, id);
    return rest.length > 0 ? rest : undefined;
  };
  return { include: move(c["include"], pin), exclude: move(c["exclude"], exclude) };
};

// Items are all items of a placement: what they earn, whether they may be shown, and why they are not.
export default function Items(props: { name: string }) {
  const { name } = props;
  const may = useMay("admin");
  const [typed, setTyped] = useState("");
  const [contains, setContains] = useState("");
  const [only, setOnly] = useState("");
  const [sort, setSort] = useState("earned");
  const [turn, setTurn] = useState(0);
  const [asked, ask] = useState<{ item: ShelfItem; what: "pin" | "exclude" }>();
  const [done, setDone] = useState<{ text: string; before?: Place }>();
  const [failed, fail] = useState<unknown>();
  const opener = useRef<Element | null>(null);
  const config = usePoll((signal) => get<Config>(placement(name), signal), name, 30_000, turn).value;
  useEffect(() => {
    const timer = setTimeout(() => setContains(typed.trim()), 250);
    return () => clearTimeout(timer);
  }, [typed]);
  const settle = async (what: () => Promise<Place | void>, text: string) => {
    fail(undefined);
    setDone(undefined);
    try {
      const before = await what();
      setDone({ text, ...(before ? { before } : {}) });
      document.querySelector<HTMLElement>("main .rows")?.focus({ preventScroll: true }); // the pressed button is gone
      ask(undefined);
      setTurn((n) => n + 1);
    } catch (problem) {
      fail(problem);
    }
  };
  const move = (i: ShelfItem, pin: number, exclude: number, said: string) => settle(async () => {
    const { include, exclude: out } = (await adjust(name, placed(i.item.id, pin, exclude))) as Config;
    return { id: i.item.id, pin: indexIn(include, i.item.id), exclude: indexIn(out, i.item.id) };
  }, `“${productOf(i.item).title}” is ${said}.`);
  const undo = ({ id, pin, exclude }: Place) => settle(async () => void (await adjust(name, placed(id, pin, exclude))), "It is as it was before.");
  return (
    <>
      <div role="status" class={done ? "said" : "none"}>{done ? <>{done.text} {done.before ? <button type="button" onClick={() => void undo(done.before!)}>Undo</button> : null}</> : null}</div>
      {failed ? <Failure of={failed} /> : null}
      <Relearning name={name} done={(text) => { setDone({ text }); setTurn(turn + 1); }} />
      {asked && config ? <Ask name={name} config={config} of={asked.item} what={asked.what} leave={() => { if (opener.current instanceof HTMLElement) opener.current.focus(); ask(undefined); }} go={() => void (asked.what === "pin" ? move(asked.item, Infinity, -1, "on every page now") : move(asked.item, -1, Infinity, "on no page now"))} /> : null}
      <div class="controls">
        <label>Find <input type="search" placeholder="title, brand or id" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} /></label>
        <label>Show <select value={only} onChange={(e) => setOnly(e.currentTarget.value)}>{filters.map(([text, v]) => <option value={v}>{text}</option>)}</select></label>
        <label>Sort by <select value={sort} onChange={(e) => setSort(e.currentTarget.value)}>{orders.map(([text, v]) => <option value={v}>{text}</option>)}</select></label>
      </div>
      <List key={`${name} ${contains} ${only} ${sort}`} name={name} turn={turn} query={{ contains, only, sort }} currency={config?.currency} config={config} may={may} ask={(item, what) => { opener.current = document.activeElement; ask({ item, what }); }} release={(i) => void move(i, -1, -1, "up to Vitrine again")} />
    </>
  );
}

// List has the height of all items, and only those in view.
function List(props: { name: string; turn: number; query: Record<string, string>; currency: string | undefined; config: Config | undefined; may: boolean; ask: (i: ShelfItem, what: "pin" | "exclude") => void; release: (i: ShelfItem) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [state, set] = useState<{ count?: number; complete?: boolean; failure?: unknown }>({});
  const parts = useRef(new Map<number, ShelfItem[]>());
  const [, arrived] = useState(0);
  const [height, setHeight] = useState(72); // of a row in pixels, which depends on the size of the text
  const measure = () => {
    const row = box.current?.querySelector(".tall > *");
    if (row) setHeight(row.getBoundingClientRect().height);
  };
  useLayoutEffect(measure);
  useEffect(() => {
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  const view = 9; // rows
  const all = (state.count ?? 0) * height, tall = Math.min(all, tallest), seen = box.current?.clientHeight ?? 0;
  const at = top * (tall < all ? (all - seen) / (tall - seen) : 1); // of the present view among all rows
  const first = Math.max(0, Math.floor(at / height) - 3), last = Math.floor(at / height) + view + 3;
  const wanted = [...new Set([Math.floor(first / part), Math.floor(last / part)])].filter((k) => k === 0 || k * part < (state.count ?? 0));
  const key = wanted.join(" ");
  const load = async (k: number, signal: AbortSignal) => {
    const query = new URLSearchParams({ ...Object.fromEntries(Object.entries(props.query).filter(([, v]) => v)), from: `${k * part}`, limit: `${part}` });
    try {
      const s = await get<Shelf>(`${placement(props.name, "shelf")}?${query}`, signal);
      parts.current.set(k, s.items);
      for (const old of parts.current.keys()) if (parts.current.size > 20) parts.current.delete(old);
      set({ count: s.count, complete: s.complete });
      arrived((n) => n + 1);
    } catch (failure) {
      if (!signal.aborted) set((before) => ({ ...before, failure }));
    }
  };
  useEffect(() => {
    const stop = new AbortController();
    for (const k of wanted) if (!parts.current.has(k)) void load(k, stop.signal);
    return () => stop.abort();
  }, [key]);
  useEffect(() => { // what is in view changes with time, and after an action
    const stop = new AbortController();
    const again = () => wanted.forEach((k) => void load(k, stop.signal));
    if (props.turn > 0) again();
    const timer = setInterval(() => document.hidden || again(), 10_000);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [key, props.turn]);
  const rows = [];
  for (let i = first; i < Math.min(last, state.count ?? 0); i++) rows.push({ i, of: parts.current.get(Math.floor(i / part))?.[i % part] });
  if (state.failure && state.count === undefined) return <Failure of={state.failure} />;
  if (state.count === 0) return <>{state.failure ? <Failure of={state.failure} /> : null}{props.query["contains"] || props.query["only"] ? <Empty>No item matches.</Empty> : <NoItems name={props.name} config={props.config} />}</>;
  return (
    <section class="card flush" aria-label="Items">
      {state.failure ? <Failure of={state.failure} /> : null}
      <p class="quiet pad" role="status">{state.count === undefined ? "Loading…" : `${plural(state.count, "item")}${props.query["sort"] === "earned" ? ". Those with few sales come later, until they have proved themselves." : ""}${state.complete === false ? " Only the items shown most keep their counts: an item that lost its count and came back counts from then on." : ""}`}</p>
      <div class="rows" ref={box} tabIndex={0} role="table" aria-label="Items" aria-rowcount={state.count === undefined ? -1 : state.count + 1} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
        <div class="row-of-items heading" role="row" aria-rowindex={1}>
          {["Item", "Times shown", "Bought when shown", "Earned per page", "State", "Actions"].map((t, k) => <span role="columnheader" class={k > 0 && k < 3 ? "wide-only" : ""}>{k < 5 ? t : null}{k === 3 ? <small class="narrow-only">bought of shown</small> : null}{k < 5 ? null : <span class="hidden">{t}</span>}</span>)}
        </div>
        <div role="rowgroup" class="tall" style={{ height: `${tall}px` }}>
          {rows.map(({ i, of }) => (
            <div class="row-of-items" role="row" aria-rowindex={i + 2} key={i} style={{ top: `${i * height + top - at}px` }}>
              {of ? <Row of={of} complete={state.complete ?? true} {...props} /> : <span role="cell" class="quiet">…</span>}
            </div>
          ))}
        </div>
      </div>
    </section>
  );
}

// NoItems says how items come.
function NoItems(props: { name: string; config: Config | undefined }) {
  const { required } = useContext(SessionContext);
  const { config } = props;
  if (!config) return <Loading />;
  const owner = config.catalogue_of ?? props.name;
  return (
    <Card title="No items yet">
      <p>Send the items with each request, or put them into the catalogue{config.catalogue_of ? ` of “${owner}”` : ""} once:</p>
      <Command text={push(config.features.filter((f) => f.from !== "shopper" && f.kind !== "cross" && !f.history), owner, required)} />
      <p class="quiet"><code>vitrine items push items.jsonl --placement {owner}</code> puts a whole file there.</p>
    </Card>
  );
}

function Row(props: { of: ShelfItem; complete: boolean; currency: string | undefined; may: boolean; ask: (i: ShelfItem, what: "pin" | "exclude") => void; release: (i: ShelfItem) => void }) {
  const { of: i, currency } = props;
  const p = productOf(i.item);
  const name = p.title === p.id ? p.id : `${p.title}, ${p.id}`;
  return (
    <>
      <span role="cell"><Item of={p} currency={currency}>{p.title === p.id ? null : <bdi>{p.id}</bdi>}</Item></span>
      <span role="cell" class="wide-only number">{count(i.shown)}</span>
      <span role="cell" class="wide-only number">{percent(i.taken_share)}</span>
      <span role="cell" class="number">{money(i.revenue_per_page, currency)}{i.shown > 0 ? <small class="narrow-only quiet">{percent(i.taken_share)} of {count(i.shown)}</small> : null}</span>
      <span role="cell" class={i.state !== "available" || i.pinned || i.shown === 0 ? "notable" : ""}>{stateOf(i, p.stock, props.complete)}</span>
      <span role="cell" class="actions">
        {!props.may ? null : i.pinned || i.state === "excluded"
          ? <button type="button" onClick={() => props.release(i)}>{i.pinned ? "Unpin" : "Allow"}<span class="hidden"> {name}</span></button>
          : <><button type="button" onClick={() => props.ask(i, "pin")}>Pin<span class="hidden"> {name}</span></button> <button type="button" onClick={() => props.ask(i, "exclude")}>Exclude<span class="hidden"> {name}</span></button></>}
      </span>
    </>
  );
}

// stateOf says whether an item is shown, and if not, why.
function stateOf(i: ShelfItem, stock: number | undefined, complete: boolean) {
  switch (i.state) {
    case "excluded":
      return <span class="warning">Excluded: on no page</span>;
    case "unavailable":
      return <span class="bad">Marked unavailable</span>;
    case "not-yet":
      return <span class="warning">Not yet: from {moment(i.item.valid_from)}</span>;
    case "over":
      return <span class="warning">Over since {moment(i.item.valid_until)}</span>;
    case "unfit":
      return <span class="bad">It lacks a feature that this placement needs</span>;
    case "gone":
      return <span class="quiet">Not in the catalogue: deleted, or requests bring it</span>;
  }
  const left = stock === undefined ? "" : stock === 0 ? "0 left, but marked as available" : `${number(stock)} left`;
  if (i.pinned) return <span class="good">Pinned{left ? ` · ${left}` : ""}</span>;
  if (i.shown === 0) return <span class="quiet">{i.item.revenue === 0 ? "Never shown: its revenue is 0" : complete ? "Never shown: others should earn more" : "Rarely or never shown: others earn more"}{left ? ` · ${left}` : ""}</span>;
  const until = i.item.valid_until ? `until ${moment(i.item.valid_until)}` : "";
  return <span>{[left || "Can be shown", until].filter(Boolean).join(" · ")}</span>;
}

// Ask says what pinning or excluding an item would cost, before it is done.
function Ask(props: { name: string; config: Config; of: ShelfItem; what: "pin" | "exclude"; leave: () => void; go: () => void }) {
  const { of: i, what } = props;
  const p = productOf(i.item);
  const heading = useRef<HTMLHeadingElement>(null);
  const [cost, setCost] = useState<{ text: string } | undefined>();
  useEffect(() => heading.current?.focus(), [i.item.id, what]);
  useEffect(() => {
    const stop = new AbortController();
    setCost(i.state === "gone" ? { text: "What it costs is not known: the item is not in the catalogue now." } : undefined);
    if (i.state !== "gone") costOf(props.name, props.config, i.item.id, what, stop.signal).then((text) => setCost({ text }), (problem) => stop.signal.aborted || setCost({ text: `What it costs is not known. ${problem.message}` }));
    return () => stop.abort();
  }, [i.item.id, what]);
  return (
    <section class="card ask" onKeyDown={(e) => e.key === "Escape" && props.leave()}>
      <h2 ref={heading} tabIndex={-1}>{what === "pin" ? "Pin" : "Exclude"} “{p.title}”?</h2>
      <p><Item of={p} currency={props.config.currency}>{p.title === p.id ? null : <bdi>{p.id}</bdi>}</Item></p>
      <p>{what === "pin" ? i.state === "gone" ? "If it was deleted, pages show it once it is in the catalogue again. If requests bring it, their pages will show it." : "Every page will show it, as long as it is available and the other rules allow it." : "No page will show it, whatever the request asks for."} You can undo this.</p>
      <p role="status">{cost?.text ?? "Working out what it costs…"}</p>
      <div class="controls">
        <button type="button" class={what === "pin" ? "main" : "danger"} onClick={props.go}>{what === "pin" ? "Pin it" : "Exclude it"}</button>
        <button type="button" onClick={props.leave}>Leave it</button>
      </div>
    </section>
  );
}

// costOf tries pages for visitors of each kind with and without the rule, and says what the rule costs a visit.
async function costOf(name: string, config: Config, id: string, what: "pin" | "exclude", signal: AbortSignal): Promise<string> {
  const shopper = config.features.filter((f) => f.from === "shopper" && f.kind !== "cross");
  const insight = await get<Insight>(placement(name, "insight"), signal);
  const category = shopper.find((f) => f.kind === "category" && (f.values?.length ?? 0) > 1);
  const kinds: (string | undefined)[] = category ? category.values!.slice(0, 4) : [undefined];
  const typical = (f: Config["features"][number]) => {
    if (f.default !== undefined) return f.default;
    if (f.kind === "category") return f.values?.[0] ?? "other";
    if (f.kind === "text") return "";
    if (f.kind === "object") return {};
    const points = insight.effects?.find((e) => e.feature === f.name)?.points;
    return points?.[Math.floor(points.length / 2)]?.value ?? 0;
  };
  const costs: { kind: string | undefined; cost: number }[] = [];
  for (const kind of kinds) {
    const body: Record<string, unknown> = what === "pin" ? { include: [id] } : { exclude: [id] };
    if (shopper.length > 0) body["shopper"] = Object.fromEntries(shopper.map((f) => [f.name, f === category ? kind : typical(f)]));
    const trial = await request<{ explanation: { rules?: { rule: string; item?: string; cost: number }[] } }>("POST", placement(name, "try"), { body, signal });
    const rule = trial.explanation.rules?.find((r) => r.item === id);
    if (rule) costs.push({ kind, cost: rule.cost });
  }
  if (costs.length === 0) return "What it costs is not known: the placement's policy does not estimate revenue.";
  const mean = costs.reduce((n, c) => n + c.cost, 0) / costs.length;
  if (mean < 1e-6) return what === "pin" ? "It costs nothing: the best pages have it already." : "It costs nothing: the best pages do without it.";
  const each = costs.length > 1 ? `: ${costs.map((c) => `${c.kind} ${money(c.cost, config.currency)}`).join(", ")}` : "";
  return `By what the placement expects, it costs about ${money(mean, config.currency)} a visit${each}.`;
}
