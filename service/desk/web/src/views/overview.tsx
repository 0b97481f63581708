import { useState } from "preact/hooks";
import { get } from "../api";
import { VerdictLine } from "../experiment-report";
import { Gains } from "../gains";
import { lazy } from "../lazy";
import { usePoll } from "../poll";
import { address, tabAddress } from "../routes";
import { edge, rates, settled, spread, z, type Entry, type OverviewAnswer } from "../series";
import { useMay } from "../session";
import { Spark } from "../spark";
import { count, Empty, Failure, Loading, number } from "../ui";

const FirstRun = lazy(() => import("../first-run"));
const Charts = lazy(() => import("./overview-charts"));

const spans: [string, number][] = [["Last 10 minutes", 600], ["Last hour", 3600], ["Last day", 86_400], ["Last week", 604_800], ["Since the beginning", 0]];
const page = 12;

export default function Overview() {
  const [seconds, setSeconds] = useState(0);
  const [contains, setContains] = useState("");
  const [from, setFrom] = useState(0);
  const [walk, setWalk] = useState<"no" | "on" | "done">("no"); // through the first placement
  const query = new URLSearchParams({ seconds: `${seconds}`, points: "60", limit: `${page}`, from: `${from}`, contains });
  const { value, failure } = usePoll((signal) => get<OverviewAnswer>(`v1/overview?${query}`, signal), `${query}`, 2000);
  const [known, setKnown] = useState(0); // the placements when none is filtered out
  if (value && contains === "" && value.total !== known) setKnown(value.total);
  const only = value?.total === 1 && contains === "" ? value.placements[0] : undefined;
  const begins = contains === "" && (value?.total === 0 || only?.health.some((h) => h.level === "waiting"));
  if (begins && walk === "no") setWalk("on");
  if (walk === "on" && value && value.total < 2) return <FirstRun found={value.placements[0]?.name} done={() => setWalk("done")} />;
  return (
    <>
      <div class="controls">
        <label>Time <select value={seconds} onChange={(e) => setSeconds(Number(e.currentTarget.value))}>{spans.map(([text, s]) => <option value={s}>{text}</option>)}</select></label>
        {known > 3 || contains !== "" ? (
          <label>Name <input type="search" value={contains} placeholder="contains" onInput={(e) => { setContains(e.currentTarget.value); setFrom(0); }} /></label>
        ) : null}
        {useMay("admin") ? <a href={address("new")}>New placement</a> : null}
      </div>
      {failure ? <Failure of={failure} /> : null}
      {value ? null : failure ? null : <Loading />}
      {value?.total === 0 ? <Empty>No placement's name contains “{contains}”.</Empty> : null}
      {value?.placements.map((p) => <Placement key={p.name} of={p} open={value.total <= 3} seconds={seconds} />)}
      {value && value.total > page ? (
        <div class="controls">
          <button type="button" disabled={from === 0} onClick={() => setFrom(Math.max(from - page, 0))}>Previous</button>
          <span>{count(from + 1)} to {count(Math.min(from + page, value.total))} of {count(value.total)}</span>
          <button type="button" disabled={from + page >= value.total} onClick={() => setFrom(from + page)}>Next</button>
        </div>
      ) : null}
    </>
  );
}

const words = { bad: "Trouble", warning: "Look at this", waiting: "Waiting", note: "Note" };

// Placement is a placement at a glance.
function Placement(props: { of: Entry; open: boolean; seconds: number }) {
  const { of: p } = props;
  const s = spread(p.series);
  const [charts, setCharts] = useState(props.open);
  const worst = p.health.find((h) => h.level !== "note")?.level;
  const revenue = s.policy ? settled(s, s.policy) : [];
  return (
    <section class="card" aria-label={p.name}>
      <h2 class="row">
        <a href={tabAddress(p.name)}>{p.name}</a>
        <span class={`badge ${worst ?? "good"}`}>{worst ? words[worst] : "Good"}</span>
        <span class="quiet">{p.mode}, {p.policy}</span>
      </h2>
      {p.health.length > 0 ? (
        <ul class="health">{p.health.map((h) => <li class={h.level}>{h.level === "waiting" ? null : <strong>{words[h.level]}: </strong>}{h.text}</li>)}</ul>
      ) : null}
      {p.experiment ? <VerdictLine of={p.experiment.verdict} /> : null}
      <Gains of={p.gains} />
      <div class="glance">
        <dl>
          <dt>Decisions a second</dt>
          <dd>{number(p.decisions_per_second, { maximumSignificantDigits: 3 })}</dd>
          <dt>Decisions in all</dt>
          <dd>{count(p.decisions)}</dd>
        </dl>
        <Spark label={`Decisions a second of ${p.name} over time`} times={s.start_unix_seconds} values={rates(s)} />
        <dl>
          <dt>Revenue a decision</dt>
          <dd>{number(p.mean_revenue)}{p.standard_error === null ? "" : ` ± ${number(z * p.standard_error)}`}</dd>
        </dl>
        <Spark label={`Revenue a decision of ${p.name} over time, with a 95 % band`} times={s.start_unix_seconds} values={revenue} low={edge(revenue, s.policy?.standard_error ?? [], -1)} high={edge(revenue, s.policy?.standard_error ?? [], 1)} />
      </div>
      <details open={charts} onToggle={(e) => setCharts(e.currentTarget.open)}>
        <summary>Charts and address</summary>
        {charts ? <Charts series={s} seconds={props.seconds} experiment={p.experiment !== undefined} /> : null}
        <p>Base URI for clients of Azure Personalizer: <code>{new URL(`v1/placements/${encodeURIComponent(p.name)}/personalizer/v1.0`, document.baseURI.split("#")[0]).href}</code></p>
      </details>
    </section>
  );
}
