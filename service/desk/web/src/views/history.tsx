import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { adjust } from "../adjust";
import { get, placement, Problem, request } from "../api";
import { title, written } from "../form";
import { usePoll } from "../poll";
import { address } from "../routes";
import { useMay } from "../session";
import { type OverviewAnswer } from "../series";
import { Trouble } from "../trouble";
import { Card, count, duration, Empty, Failure, Loading, moment, Table } from "../ui";

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
  fields?: { field: string; before?: unknown; after?: unknown }[];
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
  "relearning-ended": "Learning from the log given up",
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

// again are changes after which another learner decided: the settings alone would not bring back what was learned.
const again = ["reset", "swapped", "adopted"];

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
  const [said, say] = useState("");
  const [failed, fail] = useState<ComponentChildren>();
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => (said || failed ? top.current?.scrollIntoView({ block: "nearest" }) : undefined), [said, failed]); // the button may be far below
  const { value, failure } = usePoll((signal) => Promise.all([get<Answer>(placement(name, "history"), signal), get<OverviewAnswer>(`v1/overview?${new URLSearchParams({ name, points: "1" })}`, signal)]), `${name} ${turn}`, 5000);
  if (!value) return failure ? <Failure of={failure} /> : <Loading />;
  const [history, overview] = value;
  const health = overview.placements[0]?.health ?? [];
  const act = async (what: () => Promise<unknown>, done: string, instead?: ComponentChildren) => {
    fail(undefined);
    say("");
    try {
      await what();
      say(done);
      setTurn(turn + 1);
    } catch (problem) {
      fail(problem instanceof Problem && problem.type.endsWith(":loss") && instead ? <p class="warning" role="alert">{instead}</p> : <Failure of={problem} />);
    }
  };
  const undo = (c: Change) => act(
    () => adjust(name, () => Object.fromEntries(c.fields!.map((f) => [f.field, f.before]))),
    "The settings are what they were before that change. This is a change of its own, which you can undo too.",
    c.fields!.some((f) => f.field === "experiment")
      ? <>What the variants have learned would be lost. <a href={address("placements", name, "experiments")}>End the experiment</a>, which asks what to keep.</>
      : <>What Vitrine has learned since would be lost. <a href={address("placements", name, "versions")}>Go back to the version</a> that was kept before this change: it has the settings, too.</>,
  );
  const standing = history.alarms.find((a) => !a.ended);
  return (
    <>
      <div ref={top}>
        <p role="status" class={said ? "good" : "none"}>{said}</p>
        {failed}
      </div>
      {failure ? <Failure of={failure} /> : null}
      <Trouble of={health} />
      {standing && may ? (
        <div class="controls">
          <button type="button" onClick={() => void act(() => request("DELETE", placement(name, "alarm")), "The alarm is cleared, and the checks begin again.")}>Clear the alarm</button>
          <a href={address("placements", name, "versions")}>Roll back to an earlier version</a>
        </div>
      ) : null}
      <Card title="Alarms">
        <Table
          caption="Alarms, the latest first"
          rows={history.alarms}
          empty="There has been no alarm. Of a hundred placements without a fault, at most one ever gets an alarm."
          columns={[
            { title: "When", text: true, cell: (a) => <>{moment(a.began)}<br /><small class="quiet">{a.ended ? `for ${duration((Date.parse(a.ended) - Date.parse(a.began)) / 1000)}` : "still standing"}</small></> },
            { title: "What", text: true, cell: (a) => <><strong>{checks[a.check] ?? a.check}</strong><br />{a.detail}<br /><small class="quiet">Without a fault, this happens {odds(a.chance)}.</small></> },
          ]}
        />
      </Card>
      <Card title="Changes">
        {history.changes.length === 0 ? <Empty>The log has no change of this placement any more.</Empty> : (
          <ol class="changes">
            {history.changes.map((c) => (
              <li key={c.entry}>
                <div class="head">
                  <strong>{kinds[c.kind] ?? c.kind}{c.version ? ` (${count(c.version)})` : ""}</strong>
                  <span class="quiet">{moment(c.time)}{c.by ? ` by ${c.by}` : ""}</span>
                  {!may || !c.fields || c.fields.length === 0 ? null : again.includes(c.kind) ? <a class="button" href={address("placements", name, "versions")}>Undo by a version<span class="hidden"> from before {moment(c.time)}</span></a> : <button type="button" onClick={() => void undo(c)}>Undo<span class="hidden"> the change of {moment(c.time)}</span></button>}
                </div>
                {c.note ? <p>{c.note}</p> : null}
                {c.fields ? <ul>{c.fields.map((f) => <li><Difference of={f} /></li>)}</ul> : null}
              </li>
            ))}
          </ol>
        )}
      </Card>
    </>
  );
}

// Difference is a setting before and after. Of a list it says what came and went.
function Difference(props: { of: { field: string; before?: unknown; after?: unknown } }) {
  const { field, before, after } = props.of;
  const name = title(field);
  const lists = [before ?? [], after ?? []];
  if (lists.every((l) => Array.isArray(l) && l.every((v) => typeof v === "string"))) {
    const [a, b] = lists as [string[], string[]];
    const came = b.filter((v) => !a.includes(v)), went = a.filter((v) => !b.includes(v));
    return <>{name}: {[came.length ? `added ${came.join(", ")}` : "", went.length ? `removed ${went.join(", ")}` : ""].filter(Boolean).join("; ") || "another order"}</>;
  }
  return <>{name}: <code>{written(field, before)}</code> → <code>{written(field, after)}</code></>;
}
