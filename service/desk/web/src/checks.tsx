import { get, placement } from "./api";
import { usePoll } from "./poll";
import { Card, count, duration, Failure, moment, percent, plural, Table } from "./ui";

// Guard is the part of a placement's statistics that says what is watched: see Guard of the OpenAPI document.
interface Guard {
  checks: Check[];
  alarm?: { check: string };
  without_sale: number;
  overdue_seconds?: number;
  outcomes_held?: number;
}

interface Check {
  name: keyof typeof names;
  decisions: number;
  needs_decisions?: number;
  from?: string;
  max_silence?: number;
  detectable_fall?: number;
}

const names = {
  "no-sale": "Something sells",
  sales: "The last 50 to 5,000 decisions sell as much as before",
  chance: "The policy earns more than chance",
  baseline: "The policy earns more than half as much as the baseline",
  "first-week": "The policy earns more than half as much as in its first week",
  predictions: "The policy earns between half and twice what it predicts",
};

// Checks lists the guard's checks, and the fall that each one would notice by now.
export function Checks(props: { name: string }) {
  const { value, failure } = usePoll((signal) => get<{ guard: Guard }>(placement(props.name, "stats"), signal), props.name, 5000);
  const guard = value?.guard;
  return (
    <Card title="Checks">
      {failure ? <Failure of={failure} /> : null}
      {guard ? (
        <>
          <Table
            caption="What the guard checks"
            rows={guard.checks}
            empty=""
            columns={[
              { title: "Check", text: true, cell: (c) => names[c.name] ?? c.name },
              { title: "State", text: true, cell: (c) => (guard.alarm?.check === c.name ? <span class="bad">alarm</span> : state(c)) },
              { title: "Would notice", text: true, cell: notices },
              { title: "Decisions", cell: (c) => count(c.decisions), wide: true },
            ]}
          />
          <p class="note">
            {plural(guard.without_sale, "decision")} in a row without a sale so far.
            {guard.overdue_seconds ? ` A decision counts as one without a sale when it is ${duration(guard.overdue_seconds)} old.` : ""}
            {guard.outcomes_held ? ` The policy has not learned from ${plural(guard.outcomes_held, "outcome")}, because of the alarm.` : ""}
          </p>
        </>
      ) : null}
    </Card>
  );
}

function state(c: Check): string {
  if (c.needs_decisions) return `needs at least ${plural(c.needs_decisions, "more decision")}`;
  if (c.from) return `begins after ${moment(c.from)}`;
  return "watching";
}

function notices(c: Check): string {
  if (c.max_silence) return `${plural(c.max_silence, "decision")} in a row without a sale`;
  return c.detectable_fall ? `a fall of ${percent(c.detectable_fall)}` : "nothing yet";
}
