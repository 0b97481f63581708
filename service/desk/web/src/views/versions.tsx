import { useState } from "preact/hooks";
import { get, placement, request, requestTagged } from "../api";
import { Differences, type Config } from "../placement-form";
import { usePoll } from "../poll";
import { useMay } from "../session";
import { Card, count, Failure, Loading, moment, number, Table } from "../ui";

interface Version {
  version: number;
  time?: string;
  learned?: number;
  rounds_since?: number;
  mean_revenue_since?: number;
  note?: string;
  automatic: boolean;
  other_learner: boolean;
  policy: Config;
}

export default function Versions(props: { name: string }) {
  const { name } = props;
  const may = useMay("admin");
  const [turn, setTurn] = useState(0);
  const [chosen, setChosen] = useState<number[]>([]);
  const [back, setBack] = useState<Version>();
  const [failed, fail] = useState<unknown>();
  const [said, say] = useState("");
  const { value, failure } = usePoll((signal) => get<{ versions: Version[] }>(placement(name, "versions"), signal), `${name} ${turn}`, 5000);
  if (!value) return failure ? <Failure of={failure} /> : <Loading />;
  const rows = value.versions.toReversed();
  const act = async (what: () => Promise<void>, done: string) => {
    fail(undefined);
    say("");
    try {
      await what();
      say(done);
      setBack(undefined);
      setTurn(turn + 1);
    } catch (problem) {
      fail(problem);
    }
  };
  const keep = (e: Event) => {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement;
    const note = new FormData(form).get("note");
    void act(async () => {
      await request("POST", placement(name, "versions"), { body: { note } });
      form.reset();
    }, "The version is kept.");
  };
  const rollBack = (v: Version) => act(async () => {
    const { tag } = await requestTagged<Config>(placement(name));
    await request("POST", placement(name, "rollback"), { body: { version: v.version }, headers: { "If-Match": tag } });
  }, `The placement is back at version ${v.version}. The state before is kept as a version too.`);
  const toggle = (v: number) => setChosen((list) => (list.includes(v) ? list.filter((x) => x !== v) : [...list.slice(-1), v]));
  const two = chosen.map((n) => rows.find((v) => v.version === n)).filter((v) => v !== undefined).sort((a, b) => a.version - b.version);
  return (
    <>
      <p role="status" class={said ? "good" : "none"}>{said}</p>
      {failed ? <Failure of={failed} /> : null}
      {failure ? <Failure of={failure} /> : null}
      <Card title="Versions">
        <Table
          caption={`Versions of ${name}`}
          rows={rows}
          empty="No version is kept yet. The service keeps one from time to time, and before each change that would lose what was learned."
          columns={[
            { title: "Compare", cell: (v) => <input type="checkbox" aria-label={`Compare version ${v.version}`} checked={chosen.includes(v.version)} onChange={() => toggle(v.version)} />, text: true },
            { title: "Version", cell: (v) => v.version },
            { title: "Kept", cell: (v) => moment(v.time), text: true },
            { title: "Why", cell: (v) => v.note || (v.automatic ? "by the clock" : "–"), text: true },
            { title: "Rounds learned", cell: (v) => count(v.learned) },
            { title: "Decisions since", cell: (v) => count(v.rounds_since) },
            { title: "Revenue a decision since", cell: (v) => number(v.mean_revenue_since) },
            { title: "Policy", cell: (v) => String(v.policy["name"] ?? "–") + (v.other_learner ? ", of an earlier learner" : ""), text: true },
            { title: "", cell: (v) => (may ? <button type="button" onClick={() => setBack(v)}>Roll back to {v.version}</button> : null), text: true },
          ]}
        />
        {may ? (
          <form class="controls" onSubmit={keep}>
            <label>Keep the present state, because <input name="note" type="text" required maxLength={500} placeholder="before the sale" /></label>
            <button>Keep</button>
          </form>
        ) : null}
      </Card>
      {back ? (
        <Card title={`Roll back to version ${back.version}?`}>
          <p>
            The learner forgets what it has learned since {moment(back.time)}: {count(back.rounds_since)} decisions have ended since then, with a revenue of {number(back.mean_revenue_since)} each.
            {back.other_learner ? " The configuration of that learner comes back too." : ""} The present state is kept as a version.
          </p>
          <div class="controls">
            <button type="button" class="danger" onClick={() => void rollBack(back)}>Roll back</button>
            <button type="button" onClick={() => setBack(undefined)}>Leave it</button>
          </div>
        </Card>
      ) : null}
      <Card title="Download">
        <ul>
          <li><a href={placement(name, "export")} download>The log</a>: the decisions with their outcomes, a line of JSON each</li>
          <li><a href={placement(name, "model")} download>The model</a>: what the learner has learned, with its configuration</li>
        </ul>
      </Card>
      {two.length === 2 ? <Compare a={two[0]!} b={two[1]!} /> : null}
    </>
  );
}

// Compare shows what differs between two versions.
function Compare(props: { a: Version; b: Version }) {
  const of = (v: Version): Config => ({ kept: moment(v.time), note: v.note ?? "–", "rounds learned": v.learned, "decisions since": v.rounds_since, "revenue a decision since": v.mean_revenue_since, ...Object.fromEntries(Object.entries(v.policy).map(([k, x]) => ["policy " + k, x])) });
  const a = of(props.a), b = of(props.b);
  const names = Object.keys({ ...a, ...b }).filter((n) => JSON.stringify(a[n]) !== JSON.stringify(b[n]));
  return (
    <Card title={`Versions ${props.a.version} and ${props.b.version}`}>
      <Differences before={a} after={b} names={names} titles={[`Version ${props.a.version}`, `Version ${props.b.version}`]} />
    </Card>
  );
}
