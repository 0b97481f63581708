import { useState } from "preact/hooks";
import { get } from "../api";
import { Command } from "../command";
import { VerdictLine } from "../experiment-report";
import { Gains } from "../gains";
import { lazy } from "../lazy";
import { usePoll } from "../poll";
import { address, tabAddress } from "../routes";
import { edge, rates, settled, spread, z, type Entry, type OverviewAnswer } from "../series";
import { useMay } from "../session";
import { Spark } from "../spark";
import { Card, count, Empty, Failure, Loading, number } from "../ui";

const Charts = lazy(() => import("./overview-charts"));

const spans: [string, number][] = [["Last 10 minutes", 600], ["Last hour", 3600], ["Last day", 86_400], ["Last week", 604_800], ["Since the beginning", 0]];
const page = 12;

export default function Overview() {
  const [seconds, setSeconds] = useState(0);
  const [contains, setContains] = useState("");
  const [from, setFrom] = useState(0);
  const query = new URLSearchParams({ seconds: `${seconds}`, points: "60", limit: `${page}`, from: `${from}`, contains });
  const { value, failure } = usePoll((signal) => get<OverviewAnswer>(`v1/overview?${query}`, signal), `${query}`, 2000);
  const [known, setKnown] = useState(0); // the placements when none is filtered out
  if (value && contains === "" && value.total !== known) setKnown(value.total);
  if (value && value.total === 0 && contains === "") return <First />;
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

// First says what to do with an empty service.
function First() {
  const at = new URL("v1/placements/home", document.baseURI.split("#")[0]).href;
  return (
    <Card title="The first placement">
      <p>A placement is a place where items are shown: a row of the home page, the cart, a mail. There is none yet. Make one{useMay("admin") ? <> <a href={address("new")}>here</a>, or</> : null} with a command:</p>
      <Command text={`curl -X PUT ${at} -H 'Content-Type: application/json' \\\n  -d '{"max_size":3,"features":[{"name":"price","kind":"number"},{"name":"brand","kind":"category"}]}'`} />
      <p>Ask it what to show:</p>
      <Command text={`curl ${at}/decisions -H 'Content-Type: application/json' \\\n  -d '{"decision_id":"visit-1","items":[{"id":"sku1","features":{"price":1.2,"brand":"acme"},"revenue":2.5},{"id":"sku2","features":{"price":0.7,"brand":"zenith"},"revenue":1.5}]}'`} />
      <p>And tell it what the shopper took, <code>null</code> for nothing:</p>
      <Command text={`curl ${at}/decisions/visit-1/outcome -H 'Content-Type: application/json' -d '{"choice":"sku1"}'`} />
      <p>With keys each command has <code>-H "Authorization: Bearer $KEY"</code> too. <a href={address("docs")}>The documentation</a> has the rest.</p>
    </Card>
  );
}
