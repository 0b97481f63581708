import { get, placement } from "../api";
import { usePoll } from "../poll";
import { Card, count, Failure, Loading, Table } from "../ui";

interface Stats {
  placement: string;
  mode: string;
  decisions: number;
  outcomes: number;
}

export default function Overview() {
  const state = usePoll(async (signal) => {
    const { placements } = await get<{ placements: { name: string }[] }>("v1/placements", signal);
    return Promise.all(placements.map((p) => get<Stats>(placement(p.name, "stats"), signal)));
  }, "");
  if (!state.value) return state.failure ? <Failure of={state.failure} /> : <Loading />;
  return (
    <Card title="Placements">
      {state.failure ? <Failure of={state.failure} /> : null}
      <Table
        caption="Placements"
        rows={state.value}
        empty="There are no placements yet. PUT v1/placements/NAME creates one."
        columns={[
          { title: "Placement", cell: (s) => s.placement, text: true },
          { title: "Mode", cell: (s) => s.mode, text: true },
          { title: "Decisions", cell: (s) => count(s.decisions) },
          { title: "Outcomes", cell: (s) => count(s.outcomes) },
        ]}
      />
    </Card>
  );
}
