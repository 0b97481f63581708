import { useState } from "preact/hooks";
import { get } from "../api";
import { phase, VerdictLine } from "../experiment-report";
import { Earned, modeWords, Money } from "../gains";
import { lazy } from "../lazy";
import { usePoll } from "../poll";
import { Revenue } from "../revenue";
import { address } from "../address";
import { type Entry, type OverviewAnswer } from "../series";
import { useMay } from "../session";
import { spans, useSpan } from "../span";
import { Badge, Trouble } from "../trouble";
import { count, Empty, Failure, Loading, Pick, plural } from "../ui";

const FirstRun = lazy(() => import("../first-run"));

const page = 12;

// Overview says of each placement whether it earns, after what is wrong.
export default function Overview() {
  const [seconds, setSeconds] = useSpan();
  const [contains, setContains] = useState("");
  const [from, setFrom] = useState(0);
  const [walk, setWalk] = useState<"no" | "on" | "done">("no"); // through the first placement
  const query = new URLSearchParams({ seconds: `${seconds}`, points: "60", limit: `${page}`, from: `${from}`, contains: contains.trim() });
  const { value, failure } = usePoll((signal) => get<OverviewAnswer>(`v1/overview?${query}`, signal), `${seconds} ${contains}`, 2000, from);
  const [known, setKnown] = useState(0); // the placements when none is filtered out
  const may = useMay("admin");
  if (value && from > 0 && from >= value.total) setFrom(page * Math.max(Math.ceil(value.total / page) - 1, 0)); // the last placements were deleted
  if (value && contains === "" && value.total !== known) setKnown(value.total);
  const only = value?.total === 1 && contains === "" ? value.placements[0] : undefined;
  const begins = contains === "" && (value?.total === 0 || only?.health.some((h) => h.level === "waiting"));
  if (begins && walk === "no") setWalk("on");
  if (walk === "on" && value && value.total < 2) return <FirstRun found={value.placements[0]?.name} done={() => setWalk("done")} />;
  const sum = value && value.total === value.placements.length ? ` · ${plural(value.placements.reduce((n, p) => n + p.decisions, 0), "visit")}` : ""; // one page does not know the sum of all
  return (
    <>
      <div class="head">
        <p class="quiet">{value ? `${plural(value.total, "placement")}${sum}. A visit is one page shown: a shopper who sees ten pages makes ten visits.` : ""}</p>
        {known > 3 || contains !== "" ? (
          <label>Find <input type="search" value={contains} placeholder="a placement" onInput={(e) => { setContains(e.currentTarget.value); setFrom(0); }} /></label>
        ) : null}
        <Pick label="Time" of={spans} value={seconds} change={setSeconds} />
        {may ? <a class="button main" href={address("new")}>New placement</a> : null}
      </div>
      {failure ? <Failure of={failure} /> : null}
      {value ? null : failure ? null : <Loading />}
      {value?.health ? <Trouble of={value.health} /> : null}
      {value?.placements.map((p) => <Trouble key={p.name} of={p.health} name={p.name} currency={p.currency} link />)}
      {value?.total === 0 ? <Empty>{contains === "" ? "There is no placement any more." : `No placement's name contains “${contains}”.`}</Empty> : null}
      <div class="placements">
        {value?.placements.map((p) => <Placement key={p.name} of={p} seconds={seconds} />)}
      </div>
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

// Placement is a placement at a glance.
function Placement(props: { of: Entry; seconds: number }) {
  const { of: p } = props;
  const waits = p.health.filter((h) => h.level === "waiting");
  return (
    <section class="card" aria-label={p.name}>
      <div class="head">
        <h2><a href={address("placements", p.name)}>{p.name}</a></h2>
        <Badge of={p} />
      </div>
      <p class="quiet">{modeWords(p)}</p>
      {p.experiment ? <VerdictLine of={p.experiment.verdict} currency={p.currency} over={phase(p.experiment) === "over"} /> : null}
      {waits.length > 0 ? <>{waits.map((h) => <p>{h.text}</p>)}<p><a href={address("placements", p.name)}>See which requests to send</a></p></> : (
        <>
          <div class="figures">
            <Earned of={p} />
            <Money of={p} brief />
          </div>
          <Revenue of={p} seconds={props.seconds} height={180} />
        </>
      )}
    </section>
  );
}
