import { useEffect, useState } from "preact/hooks";
import { get, placement, request, requestTagged } from "./api";
import { words, type ExperimentReport } from "./experiment-report";
import { Labelled, type PolicyList } from "./form";
import type { Config } from "./placement-form";
import { Card, Failure, percent } from "./ui";

interface Done {
  name: string;
  done: (said: string) => void;
}

// useChange changes the placement as it is: nobody else's change is overwritten.
function useChange(name: string) {
  const [failure, fail] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const change = async (to: (config: Config) => Config, query = ""): Promise<boolean> => {
    setBusy(true);
    fail(undefined);
    try {
      const { value, tag } = await requestTagged<Config>(placement(name));
      const { notes, warnings, ...config } = value;
      await request("PUT", placement(name) + query, { body: to(config), headers: { "If-Match": tag } });
      return true;
    } catch (problem) {
      fail(problem);
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { failure, busy, change };
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
  return <p class={props.of === 100 ? "" : "warning"} aria-live="polite">The shares sum to {percent(props.of / 100)}{props.of === 100 ? "." : ": they must sum to 100 %."}</p>;
}

const standard: Row[] = [
  { name: "shop", show: "baseline", policy: "", share: 50 },
  { name: "policy", show: "policy", policy: "", share: 50 },
];

// Begin begins an experiment.
export function Begin(props: Done) {
  const [rows, setRows] = useState(standard);
  const [policies, setPolicies] = useState<string[]>([]);
  const [control, setControl] = useState("");
  const { failure, busy, change } = useChange(props.name);
  useEffect(() => {
    get<PolicyList>("v1/policies").then((list) => setPolicies(list.policies.map((p) => p.name)), () => setPolicies([]));
  }, []);
  const set = (k: number, to: Partial<Row>) => setRows((before) => before.map((r, i) => (i === k ? { ...r, ...to } : r)));
  const sum = total(rows.map((r) => r.share));
  const submit = async (e: Event) => {
    e.preventDefault();
    const data = new FormData(e.currentTarget as HTMLFormElement);
    const experiment = {
      name: String(data.get("name")),
      control: rows.some((r) => r.name === control) ? control : undefined,
      holdout_share: share(Number(data.get("holdout"))) || undefined,
      min_gain: Number(data.get("worth")) || undefined,
      learn_from: data.get("learn"),
      variants: rows.map((r) => ({ name: r.name, show: r.show, share: share(r.share), policy: r.show === "policy" && r.policy ? { name: r.policy } : undefined })),
    };
    const begun = await change(({ explore, explore_share, ...config }) => ({ ...config, mode: "experiment", experiment }));
    if (begun) props.done("The experiment has begun.");
  };
  return (
    <Card title="Begin an experiment">
      <form class="wide" onSubmit={submit}>
        <p>Each request must then say who the shopper is, in <code>shopper_id</code>{rows.some((r) => r.show === "baseline") ? <>, and what the shop would show by itself, in <code>baseline</code></> : null}. Other requests are refused. Your shop can send this before the experiment begins.</p>
        <div class="fields">
          <Labelled name="Name" help="Another name begins another experiment.">{(id, help) => <input id={id} name="name" aria-describedby={help} type="text" required maxLength={100} placeholder="summer" />}</Labelled>
        </div>
        {rows.map((r, k) => (
          <fieldset class="item" key={k}>
            <legend>Variant {k + 1}</legend>
            <div class="fields">
              <Labelled name="Name">{(id) => <input id={id} type="text" required maxLength={64} value={r.name} onInput={(e) => set(k, { name: e.currentTarget.value })} />}</Labelled>
              <Labelled name="Shows">{(id) => <select id={id} value={r.show} onChange={(e) => set(k, { show: e.currentTarget.value as Row["show"] })}>{Object.entries(words).map(([v, text]) => <option value={v}>{text}</option>)}</select>}</Labelled>
              {r.show === "policy" ? (
                <Labelled name="Policy" help="The placement's own keeps what it has learned. Another one begins with nothing.">{(id, help) => <select id={id} aria-describedby={help} value={r.policy} onChange={(e) => set(k, { policy: e.currentTarget.value })}><option value="">the placement's own</option>{policies.map((p) => <option value={p}>{p}</option>)}</select>}</Labelled>
              ) : null}
              <Labelled name="Share in percent">{(id) => <input id={id} type="number" required min={0} max={100} step={0.01} value={r.share} onInput={(e) => set(k, { share: e.currentTarget.valueAsNumber })} />}</Labelled>
            </div>
            {rows.length > 2 ? <button type="button" onClick={() => setRows(rows.filter((_, i) => i !== k))}>Remove variant {k + 1}</button> : null}
          </fieldset>
        ))}
        <div class="controls">
          <button type="button" disabled={rows.length >= 20} onClick={() => setRows([...rows, { name: `variant-${rows.length + 1}`, show: "policy", policy: policies[0] ?? "", share: 0 }])}>Add a variant</button>
          <Total of={sum} />
        </div>
        <div class="fields">
          <Labelled name="Compared with" help="By default the first variant that shows what the shop shows by itself, or else the first one.">{(id, help) => <select id={id} aria-describedby={help} value={control} onChange={(e) => setControl(e.currentTarget.value)}><option value="">the default</option>{rows.map((r) => <option value={r.name}>{r.name}</option>)}</select>}</Labelled>
          <Labelled name="Held out, in percent" help="Shoppers who take no part in any experiment of the placement, and see what the shop shows by itself.">{(id, help) => <input id={id} name="holdout" aria-describedby={help} type="number" min={0} max={50} step={0.01} placeholder="0" />}</Labelled>
          <Labelled name="Least gain worth a change" help="The least gain in revenue a decision. The experiment should stop if no variant can gain as much.">{(id, help) => <input id={id} name="worth" aria-describedby={help} type="number" min={0} step="any" placeholder="0" />}</Labelled>
          <Labelled name="Learners learn from" help="From their own shoppers only, no variant profits from another.">{(id, help) => <select id={id} name="learn" aria-describedby={help}><option value="own">their own shoppers</option><option value="all">all shoppers</option></select>}</Labelled>
        </div>
        {failure ? <Failure of={failure} /> : null}
        <div><button class="main" disabled={busy || sum !== 100}>Begin</button></div>
      </form>
    </Card>
  );
}

// ChangeShares changes the shares of an experiment.
export function ChangeShares(props: Done & { of: ExperimentReport }) {
  const { of: r } = props;
  const [shares, setShares] = useState(r.variants.map((v) => Math.round(v.share * 10_000) / 100));
  const [holdout, setHoldout] = useState(Math.round(r.holdout_share * 10_000) / 100);
  const { failure, busy, change } = useChange(props.name);
  const sum = total(shares);
  const submit = async (e: Event) => {
    e.preventDefault();
    const changed = await change((config) => ({
      ...config,
      experiment: { ...config["experiment"], holdout_share: share(holdout || 0), variants: config["experiment"].variants.map((v: Config, k: number) => ({ ...v, share: share(shares[k]!) })) },
    }));
    if (changed) props.done("The shares are changed.");
  };
  return (
    <Card title="Change the shares">
      <form class="wide" onSubmit={submit}>
        <p>The fewest shoppers move, and only from variants that shrink. What was learned and counted stays.</p>
        <div class="fields">
          {r.variants.map((v, k) => (
            <Labelled key={v.name} name={`${v.name}, in percent`}>{(id) => <input id={id} type="number" required min={0} max={100} step={0.01} value={shares[k]} onInput={(e) => { const to = e.currentTarget.valueAsNumber; setShares((before) => before.map((s, i) => (i === k ? to : s))); }} />}</Labelled>
          ))}
          <Labelled name="Held out, in percent of all">{(id) => <input id={id} type="number" min={0} max={50} step={0.01} value={holdout} onInput={(e) => setHoldout(e.currentTarget.valueAsNumber)} />}</Labelled>
        </div>
        <Total of={sum} />
        {failure ? <Failure of={failure} /> : null}
        <div><button disabled={busy || sum !== 100}>Change the shares</button></div>
      </form>
    </Card>
  );
}

// End ends an experiment, and says what decides from then on.
export function End(props: Done & { of: ExperimentReport }) {
  const { of: r } = props;
  const rivals = r.variants.filter((v) => v.learner?.own);
  const winner = rivals.find((v) => v.name === r.verdict.variant);
  const [next, setNext] = useState(winner ? winner.name : "");
  const [sure, setSure] = useState(false);
  const { failure, busy, change } = useChange(props.name);
  const lost = rivals.filter((v) => v.name !== next && (v.learner?.learned ?? 0) > 0).map((v) => v.name);
  const submit = async (e: Event) => {
    e.preventDefault();
    const rival = rivals.find((v) => v.name === next);
    const ended = await change(({ experiment, ...config }) => ({ ...config, mode: next === "/shadow" ? "shadow" : "learn", policy: rival ? rival.learner!.policy : config["policy"] }), !rival && lost.length > 0 ? "?reset=true" : "");
    if (ended) props.done("The experiment has ended.");
  };
  return (
    <Card title="End the experiment">
      <form class="wide" onSubmit={submit}>
        <fieldset>
          <legend>What decides from then on</legend>
          <label class="choice"><input type="radio" name="next" checked={next === ""} onChange={() => setNext("")} /> The placement's policy</label>
          {rivals.map((v) => <label class="choice" key={v.name}><input type="radio" name="next" checked={next === v.name} onChange={() => setNext(v.name)} /> The learner of {v.name}, with what it has learned. The placement's own one is kept as a version</label>)}
          <label class="choice"><input type="radio" name="next" checked={next === "/shadow"} onChange={() => setNext("/shadow")} /> What the shop shows by itself, while the placement's policy learns from it</label>
        </fieldset>
        {lost.length > 0 ? <p class="warning">What {lost.join(", ")} learned is then lost.</p> : null}
        <label class="choice"><input type="checkbox" checked={sure} onChange={(e) => setSure(e.currentTarget.checked)} /> End “{r.name}”</label>
        {failure ? <Failure of={failure} /> : null}
        <div><button class="danger" disabled={busy || !sure}>End the experiment</button></div>
      </form>
    </Card>
  );
}
