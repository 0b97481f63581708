import { useState } from "preact/hooks";
import { get, placement } from "../api";
import { Begin, ChangeShares, End } from "../experiment-forms";
import { from, Holdout, never, phase, Report } from "../experiment-report";
import type { ExperimentReport } from "../experiment-types";
import { secondsOf } from "../placement-form";
import { usePoll } from "../poll";
import { useMay } from "../session";
import { Card, Empty, Failure, Loading, moment, toTop } from "../ui";

interface Answer {
  experiment?: ExperimentReport;
  holdout?: ExperimentReport;
  past: ExperimentReport[];
}

const states = { waits: "waits for its start", runs: "runs", over: "is over: choose below what shoppers see from now on" };

export default function Experiments(props: { name: string }) {
  const { name } = props;
  const may = useMay("admin");
  const [turn, setTurn] = useState(0);
  const config = usePoll((signal) => get<{ currency?: string; attribution_window?: string }>(placement(name), signal), name, 60_000, turn).value;
  const currency = config?.currency;
  const [said, say] = useState("");
  const { value, failure } = usePoll((signal) => get<Answer>(placement(name, "experiment"), signal), name, 5000, turn);
  const done = (text: string) => {
    say(text);
    toTop();
    setTurn(turn + 1);
  };
  if (!value) return failure ? <Failure of={failure} /> : <Loading />;
  const now = value.experiment;
  return (
    <>
      <p role="status" class={said ? "good" : "none"}>{said}</p>
      {failure ? <Failure of={failure} /> : null}
      {now ? <Card title={`${now.name} ${states[phase(now)]}`}><Report placement={name} of={now} currency={currency} wait={config && secondsOf(config.attribution_window)} /></Card> : (
        <Card title="Is B better than A?">
          <Empty>No experiment runs. An experiment shows each shopper one of several pages, always the same one, and compares what they earn.{may ? "" : " A key with the scope admin may begin one."}</Empty>
        </Card>
      )}
      {now && may ? <End key={`end ${now.entry}`} name={name} of={now} held={!!value.holdout} done={done} /> : null}
      {now && may ? <ChangeShares key={`shares ${now.entry}`} name={name} of={now} done={done} /> : null}
      {!now && may ? <Begin name={name} done={done} /> : null}
      {value.holdout ? <Card title="What Vitrine earns over your own pages"><Holdout of={value.holdout} currency={currency} /></Card> : null}
      <Card title="Experiments that have ended">
        {value.past.length === 0 ? <Empty>None has ended yet.</Empty> : value.past.toReversed().map((r) => (
          <details key={r.entry}>
            <summary><bdi>{r.name}</bdi>, {never(r) ? "ended before its start" : moment(from(r)) + " to"} {moment(r.ended)}</summary>
            <Report placement={name} of={r} currency={currency} />
          </details>
        ))}
      </Card>
    </>
  );
}
