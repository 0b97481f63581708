import { useState } from "preact/hooks";
import { get, placement, request, requestTagged } from "../api";
import { title } from "../form";
import { useOnce } from "../once";
import { changed, Differences, type Config } from "../placement-form";
import { usePoll } from "../poll";
import { useCurrency } from "../products";
import { address } from "../address";
import { useMay } from "../session";
import { Card, Empty, Failure, Loading, moment, money, plural, Question, toTop, Warnings } from "../ui";

interface Version {
  version: number;
  time: string;
  learned?: number;
  rounds_since: number;
  mean_revenue_since?: number;
  note?: string;
  automatic: boolean;
  other_learner: boolean;
  policy: Config;
  config?: Config;
  warnings?: string[];
}

export default function Versions(props: { name: string }) {
  const { name } = props;
  const may = useMay("admin");
  const currency = useCurrency(name);
  const [turn, setTurn] = useState(0);
  const once = useOnce();
  const [back, setBack] = useState<{ to: Version; now: Config; tag: string; relearns: boolean }>();
  const [failed, fail] = useState<unknown>();
  const [said, say] = useState("");
  const { value, failure } = usePoll((signal) => get<{ versions: Version[] }>(placement(name, "versions"), signal), name, 5000, turn);
  if (!value) return failure ? <Failure of={failure} /> : <Loading />;
  const run = async (what: () => Promise<void>, done = "") => {
    fail(undefined);
    say("");
    try {
      await what();
      if (!done) return;
      say(done);
      toTop();
      setBack(undefined);
      setTurn(turn + 1);
    } catch (problem) {
      fail(problem);
    }
  };
  const act = (what: () => Promise<void>, done: string) => once(() => run(what, done));
  const keep = (e: Event) => {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement;
    const note = new FormData(form).get("note");
    void act(async () => {
      await request("POST", placement(name, "versions"), { body: { note } });
      form.reset();
    }, "The version is kept.");
  };
  const look = (to: Version) => run(async () => {
    const { value: now, tag } = await requestTagged<Config>(placement(name));
    const { relearning } = await get<{ relearning?: unknown }>(placement(name, "stats"));
    setBack({ to, now, tag, relearns: Boolean(relearning) });
  });
  const rollBack = (to: Version, tag: string) => act(async () => {
    await request("POST", placement(name, "rollback"), { body: { version: to.version }, headers: { "If-Match": tag } });
  }, `“${name}” is back at ${moment(to.time)}. The state before is kept as a version too.`);
  return (
    <>
      <p role="status" class={said ? "good" : "none"}>{said}</p>
      {failed ? <Failure of={failed} /> : null}
      {failure ? <Failure of={failure} /> : null}
      <Card title="Go back to an earlier state">
        <p>A version is what Vitrine had learned at a time. One is kept from time to time, and before each change that would lose something.</p>
        {value.versions.length === 0 ? <Empty>No version is kept yet.</Empty> : (
          <ol class="timeline">
            {value.versions.toReversed().map((v) => (
              <li key={v.version}>
                <h3><time dateTime={v.time}>{moment(v.time)}</time> <small class="quiet">version {v.version}</small></h3>
                <p>{v.note ? <bdi>{sentence(v.note)}</bdi> : "Kept automatically."}{v.other_learner ? " With other settings than today." : ""}</p>
                <p class="quiet">
                  {v.learned === undefined ? "" : `It had learned from ${plural(v.learned, "visit")}. `}
                  {v.rounds_since === 0 ? (v.other_learner ? "" : "No visit has ended since.") : `${plural(v.rounds_since, "visit")} since${v.mean_revenue_since === undefined ? "" : `, which earned ${money(v.mean_revenue_since, currency)}${v.rounds_since === 1 ? "" : " each"}`}.`}
                </p>
                {may ? <button type="button" id={`back-${v.version}`} aria-expanded={back?.to.version === v.version} onClick={() => void look(v)}>Go back to this…</button> : null}
                {back?.to.version === v.version ? <Effect {...back} name={name} yes={() => void rollBack(back.to, back.tag)} no={() => { document.getElementById(`back-${v.version}`)!.focus(); setBack(undefined); }} /> : null}
              </li>
            ))}
          </ol>
        )}
        {may ? (
          <form class="controls" onSubmit={keep}>
            <label>Keep today's state, because <input name="note" type="text" required maxLength={500} placeholder="before the sale" /></label>
            <button>Keep</button>
          </form>
        ) : null}
      </Card>
      <Card title="Download">
        <ul>
          <li><a href={placement(name, "export")} download>All visits</a> that are still in the log: what was shown and what was taken, a line of JSON each</li>
          <li><a href={placement(name, "model")} download>The model</a>: what Vitrine has learned, with its settings</li>
        </ul>
      </Card>
    </>
  );
}

// sentence writes a note as a sentence. The service's own notes name settings.
const sentence = (note: string) => end(note.replace(/^(before a change of )([a-z_]+(?:, [a-z_]+)*)$/, (_, of, names) => of + names.split(", ").map((n: string) => (title(n) === n ? n : `“${title(n)}”`)).join(", ")));

const end = (s: string) => s.charAt(0).toLocaleUpperCase() + s.slice(1) + (/[.!?]$/.test(s) ? "" : ".");

// Effect says what going back changes, before it is done.
function Effect(props: { name: string; to: Version; now: Config; relearns: boolean; yes: () => void; no: () => void }) {
  const { to, now, relearns } = props;
  const names = to.config ? changed(now, to.config) : [];
  const same = to.rounds_since === 0 && names.length === 0;
  const experiments = to.other_learner && now["mode"] === "experiment";
  return (
    <Question label={`What going back to ${moment(to.time)} changes`} answer="Go back" yes={same || experiments || relearns ? undefined : props.yes} no={props.no}>
      <Warnings of={to.warnings ?? []} />
      {same ? <p>Going back changes nothing: no visit has ended since, and the settings stay as they are.</p> : <ul>
        <li>{to.rounds_since === 0 ? "Vitrine forgets nothing: no visit has ended since." : `Vitrine forgets what it has learned from the ${plural(to.rounds_since, "visit")} since then, and shows again what it would have shown that day.`}</li>
        {names.length > 0 ? <li>{names.length === 1 ? "One setting changes" : `${plural(names.length, "setting")} change`}, as the table shows.</li> : <li>The settings stay as they are.</li>}
        {experiments ? <li class="warning">An experiment runs. <a href={address("placements", props.name, "experiments")}>End it first.</a></li> : null}
        {relearns ? <li class="warning">Vitrine learns a change from the log. <a href={address("placements", props.name, "settings")}>Make the change now or cancel it first.</a></li> : null}
        <li>Sales, reports and past experiments stay. Today's state is kept as a version{to.warnings ? "" : ", so you can undo this"}.</li>
      </ul>}
      {names.length > 0 ? <Differences before={now} after={to.config!} names={names} titles={["Now", "Then"]} /> : null}
    </Question>
  );
}
