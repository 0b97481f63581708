import { useEffect, useRef, useState } from "preact/hooks";
import { draft, make, newWarnings } from "../adjust";
import { get, placement, request } from "../api";
import { Setting, title } from "../form";
import { useOnce } from "../once";
import { changed, type Config } from "../placement-form";
import { usePoll } from "../poll";
import { useProducts, type Product } from "../products";
import { Relearning } from "../relearning";
import { address } from "../address";
import { useMay } from "../session";
import { type OverviewAnswer } from "../series";
import { Trouble } from "../trouble";
import { amounts, Card, count, duration, Empty, Failure, Loading, moment, plural, portion, Question, sentence, Table, toTop, Warnings } from "../ui";

interface Answer {
  changes: Change[];
  alarms: Alarm[];
}

interface Change {
  entry: number;
  time: string;
  kind: keyof typeof kinds;
  by?: string;
  version?: number;
  note?: string;
  fields?: Changed[];
}

interface Changed {
  field: string;
  before?: any;
  after?: any;
}

interface Alarm {
  check: keyof typeof checks;
  detail: string;
  chance: number;
  began: string;
  ended?: string;
}

const kinds = {
  created: "Placement created",
  changed: "Settings changed",
  "version-saved": "Version kept",
  "rolled-back": "Rolled back",
  reset: "Learner began again",
  "relearning-begun": "Learning from the log began",
  "relearning-ended": "Learning from the log cancelled",
  swapped: "Learning from the log finished, and settings changed",
  adopted: "Experiment ended, and a variant's learner took over",
  "alarm-cleared": "Alarm cleared",
};

const checks = {
  "no-sale": "Nothing sold",
  sales: "Sales fell",
  chance: "Earned less than random pages",
  baseline: "Earned less than your own pages",
  "first-week": "Earned less than in the first week",
  predictions: "Predictions did not come true",
};

// learned reports whether a change also changed what was learned, which versions bring back, and the settings alone do not.
const learned = (c: Change) => ["reset", "swapped", "adopted", "rolled-back"].includes(c.kind);

// undoable reports whether something takes a change back. Experiments begin and end in their own tab.
const undoable = (c: Change) => learned(c) || (!!c.fields?.length && c.kind !== "relearning-begun" && !c.fields.some((f) => f.field === "experiment"));

const pages = ["include", "exclude"]; // settings that are items

// moved names the additions to a list of names, and the removals. It is undefined for other settings.
function moved({ before = [], after = [] }: Changed): { came: string[]; went: string[] } | undefined {
  if (![before, after].every((l) => Array.isArray(l) && l.every((v) => typeof v === "string"))) return undefined;
  return { came: after.filter((v: string) => !before.includes(v)), went: before.filter((v: string) => !after.includes(v)) };
}

// undone returns a setting without a change. Later changes of a list stay.
function undone(now: string[] | undefined, c: Changed): unknown {
  const { came, went } = moved(c) ?? { came: [], went: [] };
  if (came.length + went.length === 0) return c.before;
  const list = [...(now ?? []).filter((v) => !came.includes(v) && !went.includes(v)), ...went];
  return list.length > 0 ? list : undefined;
}

// overtaken names a setting of a change that was changed again later to another value, which undoing would lose.
function overtaken(c: Change, changes: Change[]): string | undefined {
  for (const f of c.fields ?? []) {
    const { came, went } = moved(f) ?? { came: [], went: [] };
    const later = came.length + went.length === 0 ? changes.find((o) => o.kind !== "relearning-begun" && o.fields?.some((g) => g.field === f.field)) : undefined; // the latest comes first
    if (!later || later.entry === c.entry || JSON.stringify(later.fields!.find((g) => g.field === f.field)!.after) === JSON.stringify(f.after)) continue;
    return `“${title(f.field)}” was changed again on ${moment(later.time)}${later.by ? ` by ${later.by}` : ""}, and undoing this change would lose that. Undo the later change first.`;
  }
  return undefined;
}

// odds says how rarely something happens that has a probability, in the words of an alarm.
function odds(chance: number): string {
  if (chance >= 0.1) return "now and then";
  if (chance < 1e-9) return "less than once in a billion times";
  const n = 1 / chance;
  if (n >= 999_500) return `about once in ${count(n / 1e6)} million times`;
  return `about once in ${count(n >= 999.5 ? 1000 * Math.round(n / 1000) : n)} times`;
}

// History is what went wrong, and who changed what.
export default function History(props: { name: string }) {
  const { name } = props;
  const may = useMay("admin");
  const [turn, setTurn] = useState(0);
  const once = useOnce();
  const [said, say] = useState("");
  const [failed, fail] = useState<unknown>();
  const [asks, setAsks] = useState(false);
  const [undoing, setUndoing] = useState<{ entry: number; warnings: string[]; go: () => void }>();
  const { value, failure } = usePoll((signal) => Promise.all([get<Answer>(placement(name, "history"), signal), get<OverviewAnswer>(`v1/overview?${new URLSearchParams({ name, points: "1" })}`, signal)]), name, 5000, turn);
  const product = useProducts(name, value?.[0].changes.flatMap((c) => c.fields ?? []).filter((f) => pages.includes(f.field)).flatMap((f) => [f.before, f.after]).flat().filter((id) => typeof id === "string") ?? []);
  if (!value) return failure ? <Failure of={failure} /> : <Loading />;
  const [history, overview] = value;
  const health = overview.placements[0]?.health ?? [];
  const act = (what: () => Promise<string | undefined>) => once(async () => { // its text says what is done
    fail(undefined);
    say("");
    setUndoing(undefined);
    try {
      const done = await what();
      if (!done) return;
      say(done);
      setTurn(turn + 1);
    } catch (problem) {
      fail(problem);
    }
    toTop();
  });
  const undo = (c: Change) => act(async () => {
    const later = overtaken(c, (await get<Answer>(placement(name, "history"))).changes);
    if (later) throw new Error(later);
    const d = await draft(name, (now) => Object.fromEntries(c.fields!.map((f) => [f.field, undone(now[f.field], f)])));
    const warnings = await newWarnings(name, d);
    if (warnings.length === 0) return make(name, d).then(() => "That change is undone. This is a change of its own, which you can undo too.");
    setUndoing({ entry: c.entry, warnings, go: () => void act(() => make(name, d).then(() => "That change is undone.")) });
    return undefined;
  });
  const standing = history.alarms.find((a) => !a.ended);
  return (
    <>
      <p role="status" class={said ? "good" : "none"}>{said}</p>
      {failed ? <Failure of={failed} /> : null}
      {failure ? <Failure of={failure} /> : null}
      <Trouble of={health} currency={overview.placements[0]?.currency} />
      <Relearning name={name} done={(text) => { say(text); setTurn(turn + 1); }} />
      {standing && may ? (
        <div class="controls">
          <button type="button" onClick={() => setAsks(true)}>Clear the alarm…</button>
          <a href={address("placements", name, "versions")}>Roll back to an earlier version</a>
        </div>
      ) : null}
      {standing && may && asks ? <Clear name={name} of={standing} leave={() => setAsks(false)} go={(query) => void act(() => request("DELETE", placement(name, "alarm") + query).then(() => "The alarm is cleared, and the checks begin again.")).then((ran) => ran && setAsks(false))} /> : null}
      <Card title="Alarms">
        <Table
          caption="Alarms, the latest first"
          rows={history.alarms}
          empty="There has been no alarm. A placement without a fault has at most a 1% chance of ever getting one."
          columns={[
            { title: "When", text: true, cell: (a) => <>{moment(a.began)}<br /><small class="quiet">{a.ended ? `for ${duration((Date.parse(a.ended) - Date.parse(a.began)) / 1000)}` : "still standing"}</small></> },
            { title: "What", text: true, cell: (a) => <><strong>{checks[a.check] ?? a.check}</strong><br />{sentence(amounts(a.detail, overview.placements[0]?.currency))}<br /><small class="quiet">Without a fault, this happens {odds(a.chance)}.</small></> },
          ]}
        />
      </Card>
      <Card title="Changes">
        {history.changes.length === 0 ? <Empty>The log has no change of this placement any more.</Empty> : (
          <ol class="changes">
            {history.changes.map((c) => (
              <li key={c.entry}>
                <div class="head">
                  <strong>{kinds[c.kind] ?? c.kind}{c.version ? ` (version ${c.version})` : ""}</strong>
                  <span class="quiet">{moment(c.time)}{c.by ? ` by ${c.by}` : ""}</span>
                  {!may || !undoable(c) ? null : learned(c) ? <a class="button" href={address("placements", name, "versions")}>Undo in versions<span class="hidden">, the change of {moment(c.time)}</span></a> : <button type="button" id={`undo-${c.entry}`} aria-expanded={undoing?.entry === c.entry} onClick={() => void undo(c)}>Undo<span class="hidden"> the change of {moment(c.time)}</span></button>}
                </div>
                {undoing?.entry === c.entry ? <Question label={`What undoing the change of ${moment(c.time)} does`} answer="Undo all the same" yes={undoing.go} no={() => { document.getElementById(`undo-${c.entry}`)!.focus(); setUndoing(undefined); }}><Warnings of={undoing.warnings} /></Question> : null}
                {c.note ? <p>{c.note}</p> : null}
                {c.fields ? <ul>{c.fields.map((f) => <li><Difference of={f} product={product} /></li>)}</ul> : null}
              </li>
            ))}
          </ol>
        )}
      </Card>
    </>
  );
}

// Clear asks before an alarm is cleared, because outcomes that waited may be lost.
function Clear(props: { name: string; of: Alarm; leave: () => void; go: (query: string) => void }) {
  const { value, failure } = usePoll((signal) => get<{ guard: { outcomes_held?: number } }>(placement(props.name, "stats"), signal), props.name, 5000);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const held = value?.guard.outcomes_held ?? 0, outcomes = plural(held, "outcome");
  const doubtful = held > 0 && props.of.check === "no-sale";
  return (
    <section class="card ask" onKeyDown={(e) => e.key === "Escape" && props.leave()}>
      <h2 ref={heading} tabIndex={-1}>Clear the alarm?</h2>
      <p>All checks begin again, and Vitrine decides as usual. You cannot undo this.</p>
      {failure ? <Failure of={failure} /> : value ? null : <Loading />}
      {held === 0 ? null : doubtful
        ? <p>{outcomes} came during the alarm, and Vitrine has not learned from {held === 1 ? "it" : "them"}. If sales were not reported, skip {held === 1 ? "it" : "them"}: “no sale” would be false. If nothing was sold, learn {held === 1 ? "it" : "them all"}.</p>
        : <p>Vitrine then learns from {outcomes} that waited during the alarm.</p>}
      <div class="controls">
        <button type="button" class="main" disabled={!value && !failure} onClick={() => props.go("")}>{doubtful ? `Clear it and skip ${outcomes}` : "Clear it"}</button>
        {doubtful ? <button type="button" onClick={() => props.go("?learn=all")}>Clear it and learn {outcomes}</button> : null}
        <button type="button" onClick={props.leave}>Leave it</button>
      </div>
    </section>
  );
}

// Difference is a setting before and after. Of a list it says what came and went.
function Difference(props: { of: Changed; product: (id: string) => Product }) {
  const { field, before, after } = props.of;
  const name = title(field);
  if (field === "experiment" && before && before.name === after?.name) return <>{name} <Setting name={field} value={after} />: {inExperiment(before, after)}</>;
  const list = moved(props.of);
  if (list) {
    const { came, went } = list;
    const item = (id: string) => (pages.includes(field) && props.product(id).title !== id ? `“\u2068${props.product(id).title}\u2069” (${id})` : id);
    const all = (ids: string[]) => ids.map(item).join(", ");
    return <>{name}: {[came.length ? `added ${all(came)}` : "", went.length ? `removed ${all(went)}` : ""].filter(Boolean).join("; ") || "another order"}</>;
  }
  return <>{name}: <Setting name={field} value={before} /> → <Setting name={field} value={after} /></>;
}

// inExperiment describes a change of a running experiment.
function inExperiment(before: Config, after: Config): string {
  const write = (name: string, value: any) => (value === undefined ? "–" : ["starts", "ends"].includes(name) ? moment(value) : JSON.stringify(value));
  return changed(before, after).flatMap((n) => {
    if (n !== "variants") return [`${n.replaceAll("_", " ")} ${write(n, before[n])} → ${write(n, after[n])}`];
    return after[n].flatMap((v: Config, k: number) => (v["share"] === before[n][k]?.share ? [] : [`${v["name"]} ${portion(before[n][k]?.share)} → ${portion(v["share"])}`]));
  }).join("; ");
}
