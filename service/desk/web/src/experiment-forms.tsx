import { useEffect, useState } from "preact/hooks";
import { get, placement, request, requestTagged } from "./api";
import { phase, visits, words } from "./experiment-report";
import type { ExperimentReport } from "./experiment-types";
import { Labelled, NumberInput, type PolicyList } from "./form";
import { ownPage, type Config } from "./placement-form";
import { usePoll } from "./poll";
import { Card, count, duration, Failure, money, number, percent, plural, portion, Table, withSign } from "./ui";
import { useUnsaved } from "./unsaved";

interface Done {
  name: string;
  done: (said: string) => void;
}

// changedSince is thrown if an experiment is not the one that the form shows.
const changedSince = () => new Error("The experiment has changed since you opened this page, in another tab or by somebody else.");

// inFuture throws if an end that was typed has passed.
const inFuture = (ends: string) => {
  if (ends && Date.parse(ends) <= Date.now()) throw new Error("The end has passed already.");
};

// useChange changes the placement as it is: nobody else's change is overwritten.
function useChange(name: string) {
  const [failure, fail] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [edited, saved] = useUnsaved();
  const change = async (to: (config: Config) => Config, query = ""): Promise<boolean> => {
    setBusy(true);
    fail(undefined);
    try {
      const { value, tag } = await requestTagged<Config>(placement(name));
      const { notes, warnings, ...config } = value;
      await request("PUT", placement(name) + query, { body: to(config), headers: { "If-Match": tag } });
      saved();
      return true;
    } catch (problem) {
      fail(problem);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const forget = () => {
    saved();
    fail(undefined);
  };
  return { failure, busy, edited, change, forget };
}

interface Row {
  name: string;
  show: "policy" | "baseline" | "uniform";
  policy: string; // "" is the placement's
  share: number; // in percent
}

// share makes a share of a percentage, in the steps that the service has.
const share = (inPercent: number) => Math.round(inPercent * 100) / 10_000;

const total = (list: number[]) => Math.round(list.reduce((a, b) => a + (Number.isFinite(b) ? b : 0), 0) * 100) / 100;

function Total(props: { of: number }) {
  return props.of === 100 ? null : <p class="warning" aria-live="polite">The shares sum to {portion(props.of / 100)}. They must sum to {percent(1)}.</p>;
}

// questions are what experiments usually ask, with the variants that answer it.
const questions: { ask: string; rows: Row[] }[] = [
  { ask: "Does Vitrine earn more than our own page?", rows: [{ name: "our-page", show: "baseline", policy: "", share: 50 }, { name: "vitrine", show: "policy", policy: "", share: 50 }] },
  { ask: "Would another way of learning earn more?", rows: [{ name: "present", show: "policy", policy: "", share: 80 }, { name: "rival", show: "policy", policy: "ts-mnl", share: 20 }] },
  { ask: "Does Vitrine earn more than random items?", rows: [{ name: "random", show: "uniform", policy: "", share: 10 }, { name: "vitrine", show: "policy", policy: "", share: 90 }] },
];

interface Plan {
  decisions: number;
  mean_revenue: number;
  conversion: number;
  decisions_per_day: number;
  observed_seconds: number;
  power: number;
  gains: { relative: number; gain: number; decisions: number | null; seconds: number | null }[];
}

// lasts writes how long something takes, in the largest unit that is at least 1.
function lasts(seconds: number): string {
  if (seconds < 3600) return "under an hour";
  for (const [unit, length] of [["year", 31_557_600], ["month", 2_629_800], ["week", 604_800], ["day", 86_400], ["hour", 3600]] as const) {
    if (seconds >= 1.5 * length || unit === "hour") return number(Math.ceil(seconds / length), { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 0 });
  }
  return "";
}

// local writes a time for a field of the kind datetime-local.
function local(time: number): string {
  const t = new Date(time);
  return new Date(time - t.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// Planned says how long an experiment takes, by the placement's own sales.
function Planned(props: { name: string; currency: string | undefined; rows: Row[]; control: string; end: (seconds: number) => void }) {
  const { rows } = props;
  const control = rows.find((r) => r.name === props.control) ?? rows.find((r) => r.show === "baseline") ?? rows[0]!;
  const shares = [control, ...rows.filter((r) => r !== control)].map((r) => share(r.share));
  const query = `shares=${shares.join(",")}`;
  const { value: plan, failure } = usePoll((signal) => get<Plan>(`${placement(props.name, "experiment", "plan")}?${query}`, signal), query, 10_000);
  if (!plan) return failure ? <Failure of={failure} /> : null;
  if (plan.gains.length === 0) return <p class="empty">How long an experiment takes can be told once this placement has sold something, and no earlier visit waits for a sale.</p>;
  return (
    <>
      <p>
        A visit earns {money(plan.mean_revenue, props.currency)} now, and {percent(plan.conversion)} of visits end with a sale. With {number(plan.decisions_per_day, { maximumSignificantDigits: 3 })} visits a day{plan.observed_seconds < 86_400 ? `, the rate of the last ${duration(plan.observed_seconds)}` : ""}, an experiment with these shares shows a gain after about this long. Four of five experiments with that gain are done by then.
      </p>
      <Table
        caption="How long it takes to show a gain"
        rows={plan.gains}
        empty=""
        columns={[
          { title: "If the best variant earns", cell: (g) => `${percent(g.relative)} more`, text: true },
          { title: "Per visit", cell: (g) => money(g.gain, props.currency, withSign), wide: true },
          { title: "Visits", cell: (g) => (g.decisions === null ? "too many" : number(g.decisions, { maximumSignificantDigits: 2, notation: "compact" })) },
          { title: "Time", cell: (g) => (g.seconds === null ? "–" : lasts(g.seconds)) },
          { title: "Plan", plain: true, text: true, cell: (g) => (g.seconds !== null && g.seconds < 3.2e7 ? <button type="button" onClick={() => props.end(g.seconds!)}>Plan for this</button> : null) },
        ]}
      />
    </>
  );
}

// Begin plans an experiment and begins it.
export function Begin(props: Done) {
  const [rows, setRows] = useState(questions[0]!.rows);
  const [policies, setPolicies] = useState<string[]>([]);
  const [config, setConfig] = useState<Config>();
  const [control, setControl] = useState("");
  const [starts, setStarts] = useState("");
  const [ends, setEnds] = useState("");
  const [metrics, setMetrics] = useState<{ name: string; max: number; better: string }[]>([]);
  const { failure, busy, edited, change } = useChange(props.name);
  useEffect(() => {
    get<PolicyList>("v1/policies").then((list) => setPolicies(list.policies.map((p) => p.name)), () => setPolicies([]));
    get<Config>(placement(props.name)).then(setConfig, () => setConfig(undefined));
  }, []);
  const set = (k: number, to: Partial<Row>) => setRows((before) => before.map((r, i) => (i === k ? { ...r, ...to } : r)));
  const sum = total(rows.map((r) => r.share));
  const groups: string[] = (config?.["features"] ?? []).filter((f: Config) => f["from"] === "shopper" && f["kind"] === "category").map((f: Config) => f["name"]);
  const submit = async (e: Event) => {
    e.preventDefault();
    const data = new FormData(e.currentTarget as HTMLFormElement);
    const time = (value: string) => (value ? new Date(value).toISOString() : undefined);
    const begun = await change(({ explore, explore_share, ...before }) => {
      inFuture(ends);
      if (before["mode"] === "experiment") throw new Error("An experiment runs already, from another tab or by somebody else. Only one runs at a time.");
      return {
        ...before,
        mode: "experiment",
        experiment: {
          name: String(data.get("name")),
          starts: time(starts),
          ends: time(ends),
          outside: (starts || ends) && before["mode"] === "shadow" ? "baseline" : undefined,
          control: rows.some((r) => r.name === control) ? control : undefined,
          metrics: metrics.length > 0 ? metrics : undefined,
          segment_by: data.get("groups") || undefined,
          min_gain: Number(data.get("worth")) || undefined,
          learn_from: data.get("learn"),
          variants: rows.map((r) => ({ name: r.name, show: r.show, share: share(r.share), policy: r.show === "policy" && r.policy ? { name: r.policy } : undefined })),
        },
      };
    });
    if (begun) props.done(starts && Date.parse(starts) > Date.now() ? "The experiment is planned." : "The experiment has begun.");
  };
  return (
    <Card title="Plan an experiment">
      <form class="wide" onInput={edited} onSubmit={submit}>
        <fieldset>
          <legend>What do you want to know?</legend>
          {questions.map((q) => <label class="choice" key={q.ask}><input type="radio" name="question" checked={rows === q.rows} onChange={() => setRows(q.rows)} /> {q.ask}</label>)}
        </fieldset>
        <div class="variants">
          {rows.map((r, k) => (
            <fieldset class="item" key={k}>
              <legend>{words[r.show].charAt(0).toLocaleUpperCase() + words[r.show].slice(1)}</legend>
              <div class="fields">
                <Labelled name="Called">{(id) => <input id={id} type="text" required maxLength={64} pattern="[A-Za-z0-9._:\-]+" title="letters, digits and . _ - :" value={r.name} onInput={(e) => set(k, { name: e.currentTarget.value })} />}</Labelled>
                <Labelled name="Shoppers who see it, in percent">{(id) => <NumberInput id={id} required min={0} max={100} step={0.01} value={r.share} change={(v) => set(k, { share: v })} />}</Labelled>
              </div>
            </fieldset>
          ))}
        </div>
        <Total of={sum} />
        {sum === 100 ? <Planned name={props.name} currency={config?.["currency"]} rows={rows} control={control} end={(seconds) => setEnds(local((starts ? Date.parse(starts) : Date.now()) + 1000 * seconds))} /> : null}
        <div class="fields">
          <Labelled name="Name of the experiment" help="Another name begins another experiment.">{(id, help) => <input id={id} name="name" aria-describedby={help} type="text" required maxLength={100} placeholder="summer" />}</Labelled>
          <Labelled name="Starts" help="At once if left empty.">{(id, help) => <input id={id} type="datetime-local" aria-describedby={help} value={starts} onInput={(e) => setStarts(e.currentTarget.value)} />}</Labelled>
          <Labelled name="Ends" help="When you end it, if left empty.">{(id, help) => <input id={id} type="datetime-local" aria-describedby={help} value={ends} onInput={(e) => setEnds(e.currentTarget.value)} />}</Labelled>
          {groups.length > 0 ? <Labelled name="Show results by" help="A property of shoppers. Decide by the whole experiment all the same.">{(id, help) => <select id={id} name="groups" aria-describedby={help}><option value="">nothing</option>{groups.map((g) => <option value={g}>{g}</option>)}</select>}</Labelled> : null}
        </div>
        <p>
          While it runs, each request from your shop must name the shopper in <code>shopper_id</code>{rows.some((r) => r.show === "baseline") || config?.["holdout_share"] ? <>, and send your own page in <code>baseline</code></> : null}; other requests are refused. Your shop can send this today.
          {starts || ends ? ` Before the start and after the end, all shoppers see ${config?.["mode"] === "shadow" ? "your own page" : "what Vitrine chooses"}.` : ""}
        </p>
        <details>
          <summary>Advanced</summary>
          {rows.map((r, k) => (
            <fieldset class="item" key={k}>
              <legend>{r.name}</legend>
              <div class="fields">
                <Labelled name="Shows">{(id) => <select id={id} value={r.show} onChange={(e) => set(k, { show: e.currentTarget.value as Row["show"] })}>{Object.entries(words).map(([v, text]) => <option value={v}>{text}</option>)}</select>}</Labelled>
                {r.show === "policy" ? (
                  <Labelled name="Way of learning" help="The placement's own keeps what it has learned. Another one begins with nothing.">{(id, help) => <select id={id} aria-describedby={help} value={r.policy} onChange={(e) => set(k, { policy: e.currentTarget.value })}><option value="">the placement's own</option>{policies.map((p) => <option value={p}>{p}</option>)}</select>}</Labelled>
                ) : null}
              </div>
              {rows.length > 2 ? <button type="button" onClick={() => { edited(); setRows(rows.filter((_, i) => i !== k)); }}>Remove {r.name}</button> : null}
            </fieldset>
          ))}
          <div><button type="button" disabled={rows.length >= 20} onClick={() => { edited(); setRows([...rows, { name: `variant-${rows.length + 1}`, show: "policy", policy: policies[0] ?? "", share: 0 }]); }}>Add a variant</button></div>
          <Metrics of={metrics} change={(to) => { edited(); setMetrics(to); }} />
          <div class="fields">
            <Labelled name="Compare with" help="The first variant that shows your own page, or else the first one.">{(id, help) => <select id={id} aria-describedby={help} value={control} onChange={(e) => setControl(e.currentTarget.value)}><option value="">the usual one</option>{rows.map((r) => <option value={r.name}>{r.name}</option>)}</select>}</Labelled>
            <Labelled name="Smallest gain worth a change" help="In revenue per visit. The experiment stops early if no variant can gain as much, and names no winner that may gain less.">{(id, help) => <input id={id} name="worth" aria-describedby={help} type="number" min={0} step="any" placeholder="0" />}</Labelled>
            <Labelled name="Vitrine learns from" help="If each variant learns from its own shoppers, none profits from another.">{(id, help) => <select id={id} name="learn" aria-describedby={help}><option value="own">the variant's own shoppers</option><option value="all">all shoppers</option></select>}</Labelled>
          </div>
        </details>
        {failure ? <Failure of={failure} /> : null}
        <div><button class="main" disabled={busy || sum !== 100}>{starts ? "Plan it" : "Begin"}</button></div>
      </form>
    </Card>
  );
}

// Metrics edits what the shop reports besides sales.
function Metrics(props: { of: { name: string; max: number; better: string }[]; change: (to: { name: string; max: number; better: string }[]) => void }) {
  const { of, change } = props;
  const set = (k: number, to: object) => change(of.map((m, i) => (i === k ? { ...m, ...to } : m)));
  return (
    <fieldset class="item">
      <legend>Compare what your shop reports, too</legend>
      <p class="help">Such as the margin of a sale, or the seconds that a page takes. Visits with a sale and items per visit are always compared.</p>
      {of.map((m, k) => (
        <div class="fields" key={k}>
          <Labelled name={`Name of measure ${k + 1}`}>{(id) => <input id={id} type="text" required maxLength={64} pattern="[A-Za-z0-9._:\-]+" title="letters, digits and . _ - :" value={m.name} onInput={(e) => set(k, { name: e.currentTarget.value })} />}</Labelled>
          <Labelled name={`Largest value of measure ${k + 1}`}>{(id) => <NumberInput id={id} required min={0} step="any" value={m.max} change={(v) => set(k, { max: v })} />}</Labelled>
          <Labelled name={`Measure ${k + 1} is better if it is`}>{(id) => <select id={id} value={m.better} onChange={(e) => set(k, { better: e.currentTarget.value })}><option value="higher">higher</option><option value="lower">lower</option></select>}</Labelled>
        </div>
      ))}
      <div class="controls">
        <button type="button" disabled={of.length >= 5} onClick={() => change([...of, { name: "margin", max: 100, better: "higher" }])}>Add a measure</button>
        {of.length > 0 ? <button type="button" onClick={() => change(of.slice(0, -1))}>Remove the last measure</button> : null}
      </div>
    </fieldset>
  );
}

interface Shares {
  was: { shares: number[]; ends: string | undefined };
  shares: number[]; // in percent
  ends: string;
  saved?: boolean;
}

const sharesOf = (r: ExperimentReport): Shares => ({
  was: { shares: r.variants.map((v) => v.share), ends: r.ends },
  shares: r.variants.map((v) => Math.round(v.share * 10_000) / 100),
  ends: r.ends ? local(Date.parse(r.ends)) : "",
});

// ChangeShares changes the shares of an experiment, and its end. It follows the report until the reader types.
export function ChangeShares(props: Done & { of: ExperimentReport }) {
  const { of: r } = props;
  const [typed, type] = useState<Shares>();
  const form = typed ?? sharesOf(r);
  const { was, shares, ends } = form;
  const { failure, busy, edited, change, forget } = useChange(props.name);
  useEffect(() => type((now) => now?.saved ? undefined : now), [r]); // the report has the change, unless the reader typed since
  const sum = total(shares);
  const set = (to: Partial<Shares>) => type({ ...form, saved: false, ...to });
  const submit = async (e: Event) => {
    e.preventDefault();
    const to = { shares: shares.map(share), ends: was.ends };
    const changed = await change((config) => {
      const now = config["experiment"];
      if (now?.name !== r.name || now.variants.some((v: Config, k: number) => v["share"] !== was.shares[k]) || Date.parse(now.ends ?? "2000") !== Date.parse(was.ends ?? "2000")) throw changedSince();
      if (ends !== (was.ends ? local(Date.parse(was.ends)) : "")) { // which has no seconds
        inFuture(ends);
        to.ends = ends ? new Date(ends).toISOString() : undefined;
      }
      return { ...config, experiment: { ...now, ends: to.ends, variants: now.variants.map((v: Config, k: number) => ({ ...v, share: to.shares[k] })) } };
    });
    if (!changed) return;
    type({ was: to, shares, ends, saved: true });
    props.done("The experiment is changed.");
  };
  return (
    <Card title="Change the shares or the end">
      <form class="wide" onInput={edited} onSubmit={submit}>
        <p>The fewest shoppers possible move, and only from variants that shrink. What was learned and counted stays.</p>
        <div class="fields">
          {r.variants.map((v, k) => (
            <Labelled key={v.name} name={`${v.name}, in percent`}>{(id) => <NumberInput id={id} required min={0} max={100} step={0.01} value={shares[k]} change={(to) => set({ shares: shares.map((s, i) => (i === k ? to : s)) })} />}</Labelled>
          ))}
          <Labelled name="Ends" help="When you end it, if left empty.">{(id, help) => <input id={id} type="datetime-local" aria-describedby={help} value={ends} onInput={(e) => set({ ends: e.currentTarget.value })} />}</Labelled>
        </div>
        <Total of={sum} />
        {failure ? <><Failure of={failure} /><div><button type="button" onClick={() => { forget(); type(undefined); }}>Show the experiment as it is now</button></div></> : null}
        <div><button disabled={busy || sum !== 100}>Change the experiment</button></div>
      </form>
    </Card>
  );
}

// End ends an experiment, and says what decides from then on.
export function End(props: Done & { of: ExperimentReport; held: boolean }) {
  const { of: r } = props;
  const rivals = r.variants.filter((v) => v.learner?.own);
  const winner = r.verdict.result === "ship" || r.verdict.result === "tie" ? r.variants.find((v) => v.name === r.verdict.variant) : undefined;
  const [next, setNext] = useState(winner?.learner?.own ? winner.name : winner?.show === "baseline" ? "/shadow" : "");
  const [compare, setCompare] = useState(true);
  const [sure, setSure] = useState(false);
  const { failure, busy, change } = useChange(props.name);
  const lost = rivals.filter((v) => v.name !== next && (v.learner?.learned ?? 0) > 0).map((v) => v.name);
  const early = r.verdict.result === "continue" && phase(r) === "runs";
  const submit = async (e: Event) => {
    e.preventDefault();
    const rival = rivals.find((v) => v.name === next);
    const ended = await change(({ experiment, holdout_share, ...config }) => {
      if (experiment?.name !== r.name) throw changedSince();
      return { ...config, ...(next === "/shadow" ? { mode: "shadow" } : compare && !props.held ? { mode: "explore", explore_share: 0.02, holdout_share } : { mode: "learn", holdout_share }), policy: rival ? rival.learner!.policy : config["policy"] };
    }, !rival && lost.length > 0 ? "?reset=true" : "");
    if (ended) props.done("The experiment has ended. Its result stays, at the end of this page.");
  };
  return (
    <Card title="End the experiment">
      <form class="wide" onSubmit={submit}>
        {phase(r) === "over" && r.decisions < visits(r) ? <p class="warning">{count(r.decisions)} of {plural(visits(r), "visit")} count so far. Visits that do not count before you end the experiment never will.</p> : null}
        {early ? <p class="warning">No variant is clearly better yet. If you end it now, nobody knows which one earns more.</p> : null}
        <fieldset>
          <legend>What shoppers see from then on</legend>
          <label class="choice"><input type="radio" name="next" checked={next === ""} onChange={() => setNext("")} /> What Vitrine chooses, with the placement's own way of learning</label>
          {rivals.map((v) => <label class="choice" key={v.name}><input type="radio" name="next" checked={next === v.name} onChange={() => setNext(v.name)} /> <span>What Vitrine chooses as in <bdi>{v.name}</bdi>, with what it has learned there. The present state is kept as a version</span></label>)}
          <label class="choice"><input type="radio" name="next" checked={next === "/shadow"} onChange={() => setNext("/shadow")} /> Your own page, while Vitrine learns from it</label>
        </fieldset>
        {next === "/shadow" ? <p class="warning">{ownPage}</p> : null}
        {next === "/shadow" || props.held ? null : <label class="choice"><input type="checkbox" checked={compare} onChange={(e) => setCompare(e.currentTarget.checked)} /> {percent(0.02)} of visits see random items, so that there is still something to compare with</label>}
        {lost.length > 0 ? <p class="warning">What {lost.join(", ")} learned is then lost.</p> : null}
        <label class="choice"><input type="checkbox" checked={sure} onChange={(e) => setSure(e.currentTarget.checked)} /> End “{r.name}”</label>
        {failure ? <Failure of={failure} /> : null}
        <div><button class="danger" disabled={busy || !sure}>End the experiment</button></div>
      </form>
    </Card>
  );
}
