import { useEffect, useRef, useState } from "preact/hooks";
import { get, placement, request } from "../api";
import { Why, type Answer, type Explanation } from "../explain";
import { idsOf, Labelled } from "../form";
import { usePoll } from "../poll";
import { Card, count, Empty, Failure, Loading, plural } from "../ui";

interface Feature {
  name: string;
  kind: "number" | "category" | "text" | "object" | "cross";
  from?: "item" | "shopper";
  values?: string[];
  allow_other?: boolean;
  default?: number | string;
}

interface Config {
  currency?: string;
  max_size: number;
  features: Feature[];
}

const most = 100_000; // items of a trial

// Typed are the values of features as they were typed, by name.
type Typed = Record<string, string>;

interface Row {
  key: number;
  id: string;
  revenue: string;
  features: Typed;
}

interface Trial {
  answer: Answer;
  explanation: Explanation;
}

// Try asks for a decision that is not recorded.
export default function Try(props: { name: string }) {
  const config = usePoll((signal) => get<Config>(placement(props.name), signal), props.name, 60_000);
  const items = usePoll((signal) => get<{ items?: number }>(placement(props.name, "stats"), signal), props.name, 60_000);
  if (!config.value || !items.value) return config.failure || items.failure ? <Failure of={config.failure ?? items.failure} /> : <Loading />;
  return <Form key={props.name} name={props.name} config={config.value} stored={items.value.items ?? 0} />;
}

function Form(props: { name: string; config: Config; stored: number }) {
  const { features } = props.config;
  const ofItems = features.filter((f) => f.kind !== "cross" && f.from !== "shopper");
  const ofUser = features.filter((f) => f.from === "shopper");
  const next = useRef(0);
  const blank = (): Row => ({ key: next.current, id: `item-${++next.current}`, revenue: "", features: {} });
  const [inline, setInline] = useState(props.stored === 0);
  const [rows, setRows] = useState<Row[]>(() => Array.from({ length: Math.max(3, Math.min(props.config.max_size + 1, 6)) }, blank));
  const [user, setUser] = useState<Typed>(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? "")));
  const [more, setMore] = useState<Typed>({});
  const [busy, setBusy] = useState(false);
  const [state, set] = useState<{ trial?: Trial; failure?: unknown }>({});
  const result = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (state.trial) result.current?.focus();
  }, [state.trial]);
  const change = (key: number, to: Partial<Row>) => setRows(rows.map((r) => (r.key === key ? { ...r, ...to } : r)));
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      const body: Record<string, unknown> = {};
      if (ofUser.length > 0) body["shopper"] = valuesOf(ofUser, user);
      if (inline) body["items"] = rows.map((r) => ({ id: r.id, features: valuesOf(ofItems, r.features), ...(r.revenue === "" ? {} : { revenue: Number(r.revenue) }) }));
      else {
        body["candidates"] = idsOf(more["candidates"] ?? "");
        if (more["filter"]) body["filter"] = more["filter"];
      }
      for (const rule of ["min_size", "max_size"]) if (more[rule]) body[rule] = Number(more[rule]);
      for (const rule of ["include", "exclude"]) body[rule] = idsOf(more[rule] ?? "");
      set({ trial: await request<Trial>("POST", placement(props.name, "try"), { body }) });
    } catch (failure) {
      set({ failure });
    }
    setBusy(false);
  };
  const rule = (name: string, label: string, help: string) => (
    <Labelled name={label} help={help}>
      {(id, helpID) => <input id={id} aria-describedby={helpID} type="text" value={more[name] ?? ""} onInput={(e) => setMore({ ...more, [name]: e.currentTarget.value })} />}
    </Labelled>
  );
  const rules = (
    <>
          <fieldset>
            <legend>What may be shown</legend>
            {props.stored > 0 ? (
              <div class="controls" role="radiogroup" aria-label="Candidates">
                <label><input type="radio" name="from" checked={!inline} onChange={() => setInline(false)} /> From the catalogue ({plural(props.stored, "item")})</label>
                <label><input type="radio" name="from" checked={inline} onChange={() => setInline(true)} /> Items typed here</label>
              </div>
            ) : null}
            {inline ? (
              <>
                {rows.map((r) => (
                  <fieldset class="item" key={r.key}>
                    <legend>{r.id || "item"}</legend>
                    <div class="fields">
                      <Labelled name="Id">{(id) => <input id={id} type="text" required maxLength={200} value={r.id} onInput={(e) => change(r.key, { id: e.currentTarget.value })} />}</Labelled>
                      {ofItems.map((f) => <Value key={f.name} of={f} value={r.features[f.name] ?? ""} change={(v) => change(r.key, { features: { ...r.features, [f.name]: v } })} />)}
                      <Labelled name="Revenue">{(id) => <input id={id} type="number" min="0" step="any" placeholder="1" value={r.revenue} onInput={(e) => change(r.key, { revenue: e.currentTarget.value })} />}</Labelled>
                    </div>
                    {rows.length > 1 ? <button type="button" onClick={() => setRows(rows.filter((o) => o.key !== r.key))}>Remove {r.id}</button> : null}
                  </fieldset>
                ))}
                <button type="button" onClick={() => setRows([...rows, blank()])}>Add an item</button>
              </>
            ) : (
              <div class="fields">
                {rule("candidates", "Ids", "separated by commas, an id with a comma in quotes; all items that are available if empty")}
                {rule("filter", "Filter", "a condition on attributes, such as price <= 20")}
              </div>
            )}
          </fieldset>
          <fieldset>
            <legend>Rules</legend>
            <div class="fields">
              {([["min_size", "At least", 0], ["max_size", "At most", 1]] as const).map(([name, label, min]) => (
                <Labelled key={name} name={label} help={`items, from ${min} to ${props.config.max_size}`}>
                  {(id, helpID) => <input id={id} aria-describedby={helpID} type="number" min={min} max={props.config.max_size} step={1} value={more[name] ?? ""} onInput={(e) => setMore({ ...more, [name]: e.currentTarget.value })} />}
                </Labelled>
              ))}
              {rule("include", "Must show", "ids, separated by commas, an id with a comma in quotes")}
              {rule("exclude", "Must not show", "ids, separated by commas, an id with a comma in quotes")}
            </div>
          </fieldset>
    </>
  );
  return (
    <>
      <Card title="Try a page">
        <p class="quiet">What would this visitor see? Nothing is recorded, and nothing is learned from it.</p>
        <form class="wide" onSubmit={submit}>
          {ofUser.length > 0 ? (
            <fieldset>
              <legend>Who comes</legend>
              <div class="fields">{ofUser.map((f) => <Value key={f.name} of={f} value={user[f.name] ?? ""} change={(v) => setUser({ ...user, [f.name]: v })} />)}</div>
            </fieldset>
          ) : null}
          {props.stored > most ? <p class="quiet">A trial takes at most {count(most)} of the {count(props.stored)} items: set a filter below, or name ids.</p> : null}
          {props.stored > 0 ? <details open={props.stored > most}><summary>Rules, and what may be shown</summary>{rules}</details> : rules}
          <div><button class="main" disabled={busy}>{busy ? "Working it out…" : "Show the page"}</button></div>
          {state.failure ? <Failure of={state.failure} /> : null}
        </form>
      </Card>
      <div ref={result} class="wide" tabIndex={-1} aria-live="polite" aria-label="Answer">
        {state.trial ? <Why of={state.trial.explanation} answer={state.trial.answer} currency={props.config.currency} /> : <Empty>The page will be here, with the reasons for it.</Empty>}
      </div>
    </>
  );
}

// Value is a field for the value of a feature.
function Value(props: { of: Feature; value: string; change: (value: string) => void }) {
  const { of: f, value } = props;
  const required = f.default === undefined && f.kind !== "object";
  const hint = f.default === undefined ? "" : `default ${f.default}`;
  const input = (e: { currentTarget: { value: string } }) => props.change(e.currentTarget.value);
  return (
    <Labelled name={f.name}>
      {(id) => {
        if (f.kind === "number") return <input id={id} type="number" step="any" required={required} placeholder={hint} value={value} onInput={input} />;
        if (f.kind === "object") return <textarea id={id} rows={2} placeholder="{} in JSON" spellcheck={false} value={value} onInput={input} />;
        if (f.kind === "category" && f.values && !f.allow_other) {
          return (
            <select id={id} required={required} value={value} onChange={input}>
              <option value="">{hint || "choose"}</option>
              {f.values.map((v) => <option value={v}>{v}</option>)}
            </select>
          );
        }
        return <input id={id} type="text" required={required && f.kind === "category"} placeholder={hint} value={value} onInput={input} />;
      }}
    </Labelled>
  );
}

// valuesOf returns the values of features as the API has them. What is left empty is left out, but a text without a default is empty.
function valuesOf(features: Feature[], typed: Typed): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const f of features) {
    const text = typed[f.name] ?? "";
    if (text === "" && (f.kind !== "text" || f.default !== undefined)) continue;
    if (f.kind === "number") values[f.name] = Number(text);
    else if (f.kind === "object") {
      try {
        values[f.name] = JSON.parse(text);
      } catch {
        throw new Error(`${f.name}: this is not JSON: ${text}`);
      }
    } else values[f.name] = text;
  }
  return values;
}
