import { useState } from "preact/hooks";
import { get, placement } from "../api";
import { Checks } from "../checks";
import { phase, VerdictLine } from "../experiment-report";
import { Earned, modeWords, Money } from "../gains";
import { lazy } from "../lazy";
import { usePoll } from "../poll";
import { Item, productOf, type Shelf } from "../products";
import { Relearning } from "../relearning";
import { Revenue } from "../revenue";
import { address } from "../address";
import { type Entry, type OverviewAnswer } from "../series";
import { spans, useSpan } from "../span";
import { Badge, Trouble } from "../trouble";
import { Card, count, Empty, Failure, Figure, Loading, money, number, percent, Pick, Table } from "../ui";

const FirstRun = lazy(() => import("../first-run"));
const Details = lazy(() => import("../details"));
const Taste = lazy(() => import("../taste"));

// Placement shows how a placement performs.
export default function Placement(props: { name: string }) {
  const { name } = props;
  const [seconds, setSeconds] = useSpan();
  const [open, setOpen] = useState(false); // closed details ask for nothing
  const [walk, setWalk] = useState<"no" | "on" | "done">("no"); // through the first steps, also when the last one is done
  const query = new URLSearchParams({ name, seconds: `${seconds}`, points: "90" });
  const { value, failure } = usePoll((signal) => get<OverviewAnswer>(`v1/overview?${query}`, signal), `${query}`, 2000);
  const best = usePoll((signal) => get<Shelf>(`${placement(name, "shelf")}?sort=earned&limit=5`, signal), name, 10_000).value;
  const p = value?.placements[0];
  if (value && !p) return <Empty>There is no placement “{name}”. <a href={address()}>Go to the overview.</a></Empty>;
  if (walk === "no" && p?.health.some((h) => h.level === "waiting")) setWalk("on");
  const ms = (s: number | undefined) => (s === undefined ? "–" : `${number(s * 1000, { maximumSignificantDigits: 2 })} ms`);
  const figures = (p: Entry) => (
    <>
      <Trouble of={p.health} name={name} currency={p.currency} />
      {walk === "on" ? <FirstRun found={name} done={() => setWalk("done")} /> : null}
      <Relearning name={name} />
      {p.experiment ? <VerdictLine of={p.experiment.verdict} currency={p.currency} over={phase(p.experiment) === "over"} /> : null}
      <div class="grid four">
        <Earned of={p} />
        <Money of={p} />
      </div>
      <div class="grid two">
        <Card title="Revenue per visit"><Revenue of={p} seconds={seconds} /></Card>
        <Taste name={name} currency={p.currency} />
      </div>
      <Card title="Items that earn the most" end={<a class="button" href={address("placements", name, "items")}>{best && best.count > 0 ? `All items (${count(best.count)})` : "All items"}</a>}>
        <Table
          caption="Items that earn the most on a page"
          rows={best?.items.filter((i) => i.shown > 0) ?? []}
          empty="No item shown has an outcome yet."
          columns={[
            { title: "Item", text: true, cell: (i) => <Item of={productOf(i.item)} currency={p.currency} /> },
            { title: "Times shown", cell: (i) => count(i.shown), wide: true },
            { title: "Bought when shown", cell: (i) => percent(i.taken_share) },
            { title: "Earned per page", cell: (i) => money(i.revenue_per_page, p.currency) },
          ]}
        />
      </Card>
      <details class="card" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary>Technical details</summary>
        {open ? (
          <>
            <div class="figures">
              <Figure name="Answered in" value={ms(p.latency?.p50_seconds)}>{p.latency ? `99% within ${ms(p.latency.p99_seconds)}` : "since the service started"}</Figure>
              <Figure name="Decisions" value={count(p.decisions)}>{number(p.decisions_per_second, { maximumSignificantDigits: 3 })} a second now</Figure>
            </div>
            <Checks name={name} />
            <Details name={name} />
          </>
        ) : null}
      </details>
    </>
  );
  return (
    <>
      <div class="head">
        {p ? <Badge of={p} /> : null}
        {p ? <p class="quiet">{modeWords(p)}</p> : null}
        <Pick label="Time" of={spans} value={seconds} change={setSeconds} />
        <a class="button" href={address("placements", name, "try")}>Try a page</a>
        <a class="button" href={address("placements", name, "experiments")}>{p?.experiment ? "Look at the experiment" : "Run an experiment"}</a>
      </div>
      {failure ? <Failure of={failure} /> : null}
      {p ? figures(p) : failure ? null : <Loading />}
    </>
  );
}
