import { useState } from "preact/hooks";
import { adjust } from "./adjust";
import { get, placement } from "./api";
import { usePoll } from "./poll";
import { useMay } from "./session";
import { Card, count, Failure, plural } from "./ui";

interface Stats {
  learned: number;
  relearning?: { from_entry: number; entry: number; to_entry: number; learned: number; ready: boolean; max_size?: number };
}

interface History {
  changes: { kind: string; fields?: { field: string; after?: unknown }[] }[];
}

// Relearning says how far a second learner is that learns a change from the log. A reader may make the change at once, or
// cancel it.
export function Relearning(props: { name: string; done?: (said: string) => void }) {
  const { name } = props;
  const may = useMay("admin");
  const [turn, setTurn] = useState(0);
  const [failed, fail] = useState<unknown>();
  const { value } = usePoll((signal) => get<Stats>(placement(name, "stats"), signal), name, 5000, turn);
  const r = value?.relearning;
  if (!r) return null;
  const act = (what: () => Promise<unknown>, said: string) => () => {
    fail(undefined);
    what().then(() => { setTurn(turn + 1); props.done?.(said); }, fail);
  };
  const accept = async () => {
    const { changes } = await get<History>(placement(name, "history"));
    const fields = changes.find((c) => c.kind === "relearning-begun")?.fields ?? [];
    await adjust(name, () => Object.fromEntries(fields.map((f) => [f.field, f.after])), "?relearn=accept");
  };
  return (
    <Card title="Vitrine learns a change from the log">
      <progress value={Math.max(r.entry - r.from_entry, 0)} max={r.to_entry - r.from_entry} aria-label="Entries of the log that it learned from" />
      <p>It is at entry {count(r.entry)} of {count(r.to_entry)}, and has learned from {plural(r.learned, "visit")} so far. The present learner has learned from {plural(value.learned, "visit")}. The change is made once Vitrine has read the log and learned from half as many.{r.max_size ? ` It skips visits that showed more than ${plural(r.max_size, "item")}. If pages keep showing more, it may never learn from half as many. Then make the change yourself.` : ""} Settings, pins and exclusions stay as they are until then.</p>
      {failed ? <Failure of={failed} /> : null}
      {may ? (
        <div class="controls">
          {r.ready ? <button type="button" onClick={act(accept, "The change is made.")}>Make the change now</button> : null}
          <button type="button" onClick={act(() => adjust(name, () => ({})), "The change is cancelled.")}>Cancel the change</button>
        </div>
      ) : null}
    </Card>
  );
}
