import { get, placement } from "../api";
import { Why, type Answer, type Explanation } from "../explain";
import { usePoll } from "../poll";
import { tabAddress, tabs } from "../routes";
import { Card, Failure, Loading, moment, number } from "../ui";

interface Decision extends Answer {
  decision_id: string;
  time: string;
  status: "open" | "chosen" | "expired" | "deferred" | "withdrawn" | "evicted" | "late";
  choice: string | null;
  earned: number;
  corrections?: { id: string; value?: number }[];
}

const ends: Record<Decision["status"], string> = {
  open: "Its outcome is awaited.",
  chosen: "",
  expired: "No outcome came in time, which counts as nothing taken.",
  deferred: "It waits to be activated.",
  withdrawn: "It was not activated in time.",
  evicted: "It left memory before its outcome came.",
  late: "The outcome came too late to be learned, but its revenue counts.",
};

// DecisionView shows why a decision shows what it shows.
export default function DecisionView(props: { name: string; id: string }) {
  const { value, failure } = usePoll(
    (signal) => Promise.all([get<Decision>(placement(props.name, "decisions", props.id), signal), get<Explanation>(placement(props.name, "decisions", props.id, "explanation"), signal)]),
    `${props.name} ${props.id}`,
    10_000,
  );
  const list = tabs.find((t) => t.path.endsWith("/decisions"));
  const back = <p><a href={tabAddress(props.name, list)}>All decisions of {props.name}</a></p>;
  if (!value) return <>{back}{failure ? <Failure of={failure} /> : <Loading />}</>;
  const [d, why] = value;
  return (
    <>
      {back}
      <Card title={`Decision ${d.decision_id}`}>
        <p>
          Made {moment(d.time)}. {ends[d.status]}
          {d.status === "chosen" || d.status === "late" ? (d.choice === null ? " Nothing was taken." : <> The customer took <strong class="id">{d.choice}</strong>{d.corrections ? <> and it has earned {number(d.earned)}, with corrections: {d.corrections.map((c) => (c.value === undefined ? `${c.id} (withdrawn)` : `${c.id} (${number(c.value)})`)).join(", ")}</> : null}.</>) : null}
        </p>
      </Card>
      <Why of={why} answer={d} />
    </>
  );
}
