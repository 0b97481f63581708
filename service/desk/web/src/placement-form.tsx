import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { get, placement, Problem, request } from "./api";
import { Field, Labelled, NumberInput, PolicyField, Setting, title, without, type PolicyEntry, type PolicyList } from "./form";
import { address } from "./address";
import { apiDocument, type Document } from "./schema";
import { Card, count, Failure, Loading, plural, Warnings } from "./ui";
import { useUnsaved } from "./unsaved";

export type Config = Record<string, any>;

export const ownPage = "Every request must then send baseline, the ids that your page would show by itself. Other requests are refused.";

interface Preview {
  change: "none" | "create" | "keep" | "restart" | "end" | "adopt";
  placement: Config;
  fields?: string[];
  lost?: { rounds: number; versions: number };
  can_relearn: boolean;
  max_size?: number;
}

// These members have fields of their own, in the words of a merchandiser; the others are under Advanced.
const own = ["mode", "explore", "explore_share", "max_size", "min_size", "attribution_window", "features", "policy", "experiment", "holdout_share"];

// changed returns the names of members that two configurations do not share.
export function changed(before: Config, after: Config): string[] {
  return Object.keys({ ...before, ...after }).filter((n) => n !== "notes" && n !== "warnings" && JSON.stringify(before[n]) !== JSON.stringify(after[n]));
}

// PlacementForm edits a configuration, and says what a change would do before it makes it. tag is the ETag of a placement
// that exists, which reload reads again; currency is that of a new one.
export function PlacementForm(props: { name: string; config: Config; tag?: string | undefined; currency?: string | undefined; reload?: () => void; done: (query: string) => void }) {
  const [config, setConfig] = useState(props.config);
  const [known, setKnown] = useState<{ doc: Document; policies: PolicyEntry[] }>();
  const [preview, setPreview] = useState<Preview>();
  const [how, setHow] = useState("relearn=log");
  const [failure, fail] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const [edited, saved] = useUnsaved();
  const latest = useRef(config);
  latest.current = config;
  useEffect(() => {
    Promise.all([apiDocument(), get<PolicyList>("v1/policies")]).then(([doc, list]) => setKnown({ doc, policies: list.policies }), fail);
  }, []);
  useLayoutEffect(() => {
    if (props.tag) return;
    setPreview(undefined);
    setConfig((before) => without({ ...before, currency: props.currency }));
  }, [props.currency]);
  if (!known) return failure ? <Failure of={failure} /> : <Loading />;
  const schema = known.doc.components.schemas["Placement"] ?? {};
  const more = Object.entries(schema.properties ?? {}).filter(([n, s]) => !s.readOnly && !own.includes(n) && (props.tag || n !== "currency")).map(([n]) => n);
  const change = (to: Config) => {
    edited(); // buttons make no input events
    setPreview(undefined);
    setConfig((before) => without({ ...before, ...to }));
  };
  const field = (name: string) => <Field key={name} doc={known.doc} name={name} schema={schema.properties![name]!} value={config[name]} change={(v) => change({ [name]: v })} />;
  const headers: Record<string, string> = props.tag ? { "If-Match": props.tag } : { "If-None-Match": "*" };
  const act = async (what: () => Promise<void>) => {
    setBusy(true);
    fail(undefined);
    try {
      await what();
    } catch (problem) {
      fail(problem);
    }
    setBusy(false);
  };
  const ask = (e: Event) => {
    e.preventDefault();
    void act(async () => {
      let of, v;
      do { // again if it was edited meanwhile
        of = latest.current;
        v = await request<Preview>("POST", placement(props.name, "preview"), { body: of, headers });
      } while (of !== latest.current);
      setPreview(v);
      setHow(v.can_relearn ? "relearn=log" : "reset=true");
    });
  };
  const make = () => act(async () => {
    const query = preview!.change === "end" ? "?reset=true" : preview!.change === "restart" && preview!.lost ? "?" + how : "";
    await request("PUT", placement(props.name) + query, { body: config, headers });
    saved();
    props.done(query);
  });
  return (
    <form class="wide" onInput={edited} onSubmit={ask}>
      <WhoDecides name={props.name} of={config} isNew={!props.tag} change={change} />
      <fieldset>
        <legend>How many items shoppers see</legend>
        <div class="fields">
          <Labelled name="At most">{(id) => <NumberInput id={id} required min={1} max={1000} step={1} value={config["max_size"]} change={(size) => change({ max_size: size, ...(config["min_size"] > 0 && config["min_size"] === config["max_size"] ? { min_size: size } : {}) })} />}</Labelled>
        </div>
        <label class="choice"><input type="checkbox" checked={config["min_size"] > 0} onChange={(e) => change({ min_size: e.currentTarget.checked ? config["max_size"] : undefined })} /> {config["min_size"] > 0 && config["min_size"] < config["max_size"] ? `At least ${count(config["min_size"])}` : "Always that many"}, even if fewer would earn more</label>
      </fieldset>
      <Wait value={config["attribution_window"]} change={(v) => change({ attribution_window: v })} />
      {props.tag ? null : field("features")}
      <details>
        <summary>Advanced</summary>
        <div class="fields">{more.map(field)}</div>
        {props.tag ? field("features") : null}
        <PolicyField policies={known.policies} value={config["policy"]} change={(v) => change({ policy: v })} />
      </details>
      {failure ? <Failure of={failure} /> : null}
      {props.reload && failure instanceof Problem && failure.status === 412 ? <div><button type="button" onClick={props.reload}>Show the settings as they are now</button></div> : null}
      <div class="controls"><button class={preview ? "" : "main"} disabled={busy}>See what this does</button></div>
      {preview ? (
        <Card title="What this does">
          <Effect of={preview} before={props.config} isNew={!props.tag} />
          {preview.change === "restart" && preview.lost ? (
            <fieldset>
              <legend>How to change it</legend>
              {preview.can_relearn ? (
                <label class="choice"><input type="radio" name="how" checked={how === "relearn=log"} onChange={() => setHow("relearn=log")} /> Keep the present settings for now. A second learner reads the log and takes over once it has learned from half as many visits as the present one, or when you say so</label>
              ) : null}
              <label class="choice"><input type="radio" name="how" checked={how === "reset=true"} onChange={() => setHow("reset=true")} /> Vitrine begins again with nothing. The present state is kept as a version to go back to</label>
            </fieldset>
          ) : null}
          {preview.change === "none" ? null : <button type="button" class="main" disabled={busy} onClick={make}>{props.tag ? "Make the change" : "Create the placement"}</button>}
        </Card>
      ) : null}
    </form>
  );
}

// WhoDecides is the mode.
function WhoDecides(props: { name: string; of: Config; isNew: boolean; change: (to: Config) => void }) {
  const { of, change } = props;
  const mode = of["mode"] ?? "learn";
  const percent = (share: number | undefined) => Math.round((share ?? 0.05) * 10_000) / 100;
  const holds = of["holdout_share"] > 0;
  const choice = (value: string, text: string, to: Config = {}) => (
    <label class="choice"><input type="radio" name="mode" checked={mode === value && (mode !== "learn" || holds === "holdout_share" in to)} onChange={() => change({ mode: value, explore: undefined, explore_share: undefined, holdout_share: undefined, ...to })} /> {text}</label>
  );
  return (
    <fieldset>
      <legend>Who decides what shoppers see</legend>
      {mode === "experiment" && !props.isNew ? <p>An experiment runs. <a href={address("placements", props.name, "experiments")}>Change or end it there.</a></p> : (
        <>
          {choice("learn", "Vitrine, for all shoppers")}
          {choice("explore", "Vitrine, but a few visits see random items. Comparing both shows what Vitrine earns", { explore_share: 0.02 })}
          {mode === "explore" ? (
            <div class="fields">
              <Labelled name="Visits with random items, in percent" help="More of them make the comparison quicker, and cost more.">{(id, help) => <NumberInput id={id} aria-describedby={help} required min={0.01} max={100} step={0.01} value={percent(of["explore_share"])} change={(v) => change({ explore_share: Math.round(v * 100) / 10_000 })} />}</Labelled>
              <Labelled name="What is random" help="One item costs less, but does not show what Vitrine earns.">{(id, help) => <select id={id} aria-describedby={help} value={of["explore"] ?? "sets"} onChange={(e) => change({ explore: e.currentTarget.value })}><option value="sets">the whole page</option><option value="swaps">one item of the page</option></select>}</Labelled>
            </div>
          ) : null}
          {choice("learn", "Vitrine, but a few shoppers always see your own page: the most telling comparison", { holdout_share: 0.02 })}
          {choice("shadow", "Your own page, while Vitrine learns from it")}
          {mode === "shadow" ? <p class="warning">{ownPage}</p> : null}
        </>
      )}
      {holds || mode === "experiment" ? (
        <div class="fields">
          <Labelled name="Shoppers who always see your own page, in percent" help="They stay the same ones, whatever else changes. Every request then sends baseline, the ids that your page would show by itself, and shopper_id. Other requests are refused.">{(id, help) => <NumberInput id={id} aria-describedby={help} required min={0} max={50} step={0.01} value={percent(of["holdout_share"] ?? 0)} change={(v) => change({ holdout_share: Math.round(v * 100) / 10_000 || undefined })} />}</Labelled>
        </div>
      ) : null}
    </fieldset>
  );
}

const units = [["days", 86_400], ["hours", 3600], ["minutes", 60], ["seconds", 1]] as const;

// secondsOf reads a duration such as 1h30m.
export function secondsOf(duration: string | undefined): number {
  const length: Record<string, number> = { h: 3600, m: 60, s: 1 };
  return [...(duration ?? "30m").matchAll(/([\d.]+)(h|ms|µs|ns|m|s)/g)].reduce((sum, [, n, unit]) => sum + Number(n) * (length[unit!] ?? 0), 0);
}

// Wait is the attribution window, with its unit.
function Wait(props: { value: string | undefined; change: (value: string) => void }) {
  const seconds = secondsOf(props.value);
  const [unit, setUnit] = useState(() => units.find(([, length]) => seconds % length === 0 && seconds >= length) ?? units[3]);
  const set = (n: number, of: (typeof units)[number]) => {
    setUnit(of);
    props.change(`${n > 0 ? Math.round(n * of[1]) : 0}s`);
  };
  return (
    <fieldset>
      <legend>How long to wait for a sale</legend>
      <p class="help">A visit without a reported sale counts as one without a purchase after this time.</p>
      <div class="controls">
        <NumberInput aria-label="Time" required min={1 / unit[1]} max={366 * 86_400 / unit[1]} step="any" value={seconds / unit[1]} change={(n) => set(n, unit)} />
        <select aria-label="Unit" value={unit[0]} onChange={(e) => set(seconds / unit[1], units.find(([u]) => u === e.currentTarget.value)!)}>{units.map(([u]) => <option value={u}>{u}</option>)}</select>
      </div>
    </fieldset>
  );
}

const isCurrency = (code: string) => Intl.supportedValuesOf("currency").includes(code);

// Effect says in words what a change does.
function Effect(props: { of: Preview; before: Config; isNew: boolean }) {
  const { of: p, before } = props;
  let text = "Nothing changes: these are the present settings.";
  if (p.change === "create") text = "This makes the placement. Vitrine knows nothing at first, and learns from every visit.";
  if (p.change === "keep") text = "Vitrine keeps all that it has learned.";
  if (p.change === "end") text = `The experiment ends, and what its variants have learned from ${plural(p.lost?.rounds, "visit")} is lost.`;
  if (p.change === "adopt") text = "The experiment ends, and the variant with this way of learning decides, with what it has learned. The present state is kept as a version.";
  if (p.change === "restart") {
    text = p.lost
      ? `Vitrine would forget what it has learned from ${plural(p.lost.rounds, "visit")}, because that depends on ${(p.fields ?? []).map((f) => `“${title(f)}”`).join(", ")}.`
      : "Vitrine begins again. It has learned nothing yet.";
  }
  const currency = p.placement["currency"];
  const messages: string[] = p.placement["warnings"] ?? [];
  const notes: string[] = p.placement["notes"] ?? [];
  return (
    <>
      <p class={p.lost ? "warning" : ""}>{text}</p>
      {currency && !isCurrency(currency) ? <p class="warning">No currency has the code {currency}: check it for a typo.</p> : null}
      {!props.isNew && currency !== before["currency"] ? <p class="warning">Amounts of the past are not converted: the desk shows the same numbers {currency ? <>in {currency}</> : "without a currency"}.</p> : null}
      <Warnings of={messages} />
      {props.isNew ? null : <Differences before={before} after={p.placement} names={changed(before, p.placement)} />}
      {notes.length > 0 || props.isNew ? (
        <details>
          <summary>Details</summary>
          {notes.length > 0 ? <ul class="health">{notes.map((m) => <li>{m}</li>)}</ul> : null}
          {props.isNew ? <Differences before={{}} after={p.placement} names={changed({}, p.placement)} /> : null}
        </details>
      ) : null}
    </>
  );
}

// Differences lists members of two configurations that differ.
export function Differences(props: { before: Config; after: Config; names: string[]; titles?: [string, string] }) {
  if (props.names.length === 0) return null;
  const [before, after] = props.titles ?? ["Now", "Then"];
  const isNew = Object.keys(props.before).length === 0;
  const caption = isNew ? "Settings" : "What differs";
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>{caption}</caption>
        <thead><tr><th scope="col" class="text">Setting</th>{isNew ? null : <th scope="col" class="text">{before}</th>}<th scope="col" class="text">{isNew ? "Value" : after}</th></tr></thead>
        <tbody>
          {props.names.map((n) => (
            <tr><th scope="row" class="text">{title(n)}{title(n).replaceAll(" ", "_").toLocaleLowerCase() === n ? null : <><br /><small class="quiet"><code>{n}</code></small></>}</th>{isNew ? null : <td class="text"><Setting name={n} value={props.before[n]} /></td>}<td class="text"><Setting name={n} value={props.after[n]} /></td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
