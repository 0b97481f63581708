import { useEffect, useRef, useState } from "preact/hooks";
import { get, placement, Problem } from "../api";
import { follow } from "../feed";
import { usePoll } from "../poll";
import { Item, useProducts } from "../products";
import { address } from "../address";
import { Card, count, Failure, plural, Table } from "../ui";

// Made is a decision of the feed, and what became of it.
interface Made {
  id: string;
  time: string;
  by: string;
  shown: string[];
  taken: string[];
  outcome: string;
}

const makers: Record<string, string> = { policy: "Vitrine", chance: "Random, for comparison", baseline: "Your own page", import: "Another program" };

const most = 50; // decisions that the feed shows
const earlier = [500, 5000, 50_000]; // entries of the log that the feed begins with, until it finds a decision among them

// Decisions has a search by id, and the decisions as they are made.
export default function Decisions(props: { name: string }) {
  const { rows, perSecond, failure, waits, paused, pause, looked } = useFeed(props.name);
  const config = usePoll((signal) => get<{ currency?: string }>(placement(props.name), signal), props.name, 10_000);
  const currency = config.value?.currency;
  const product = useProducts(props.name, rows.flatMap((d) => d.shown));
  const search = (event: SubmitEvent) => {
    event.preventDefault();
    const id = String(new FormData(event.currentTarget as HTMLFormElement).get("id")).trim();
    if (id) location.hash = address("placements", props.name, "decisions", id);
  };
  if (config.failure && (!config.value || (config.failure instanceof Problem && config.failure.status === 404))) return <Failure of={config.failure} />;
  return (
    <>
      <Card title="Why was a page shown?">
        <form class="controls" onSubmit={search}>
          <label>Id of the decision <input name="id" type="search" required maxLength={128} spellcheck={false} autocomplete="off" /></label>
          <button class="main">Ask why</button>
        </form>
      </Card>
      <Card title="As they are made">
        <div class="controls">
          <button type="button" aria-pressed={paused} onClick={() => pause(!paused)}>{paused ? "Continue" : "Pause"}</button>
          <span class="note">{paused ? "Paused." : perSecond === undefined ? "Connecting…" : `${plural(perSecond, "decision")} in the last second.${waits ? " The list waits while you point at it." : ""}`}</span>
        </div>
        {failure ? <Failure of={failure} /> : null}
        <Table
          caption="The last decisions"
          rows={rows}
          id={(d) => d.id}
          empty={perSecond === undefined ? "" : looked ? `No decision of this placement is among the last ${count(earlier.at(-1))} entries of the log. Earlier ones are found by their ids.` : "Looking further back…"}
          columns={[
            {
              title: "Visit",
              text: true,
              cell: (d) => (
                <>
                  <small class="quiet">{clock.format(new Date(d.time))}</small><br />
                  {d.taken.length > 0 ? <>bought {d.taken.map((id, k) => <>{k > 0 ? ", " : null}<b><bdi>{product(id).title}</bdi></b></>)}</> : d.outcome}<br />
                  <a href={address("placements", props.name, "decisions", d.id)}>Why this page?<span class="hidden"> {d.id}</span></a>
                </>
              ),
            },
            { title: "Shown", text: true, cell: (d) => <span class="products">{d.shown.slice(0, 4).map((id) => <Item of={product(id)} currency={currency} />)}{d.shown.length > 4 ? <span class="quiet">and {d.shown.length - 4} more</span> : null}</span> },
            { title: "Chosen by", text: true, cell: (d) => makers[d.by] ?? d.by, wide: true },
          ]}
        />
      </Card>
    </>
  );
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const hovers = matchMedia("(hover: hover)").matches; // on a touch screen, :hover stays after a tap

// useFeed follows the decisions of a placement. The page changes at most once a second, however many events come, and there
// is no connection while it is hidden. The rows wait while the pointer or the focus is on one of them.
function useFeed(name: string) {
  const [state, set] = useState<{ rows: Made[]; perSecond?: number; failure?: unknown; waits?: boolean }>({ rows: [] });
  const [paused, pause] = useState(false);
  const [hidden, setHidden] = useState(document.hidden);
  const [reach, setReach] = useState(0); // of earlier
  const made = useRef(new Map<string, Made>());
  useEffect(() => {
    const changed = () => setHidden(document.hidden);
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  useEffect(() => {
    made.current.clear();
    set({ rows: [] });
    setReach(0);
  }, [name]);
  useEffect(() => {
    if (paused || hidden) return;
    const stop = new AbortController();
    let fresh = 0, quiet = 0, dirty = false, isLive = false, failure: unknown;
    const begin = (now: number) => follow(
      name,
      Math.max(0, now - earlier[reach]!),
      stop.signal,
      (events) => {
        for (const e of events) {
          if (e.decision_id === undefined) continue;
          const d = made.current.get(e.decision_id);
          if (e.kind === "offered") {
            if (e.entry > now) fresh++;
            made.current.set(e.decision_id, { id: e.decision_id, time: e.time, by: e.source ?? "", shown: e.shown ?? [], taken: [], outcome: "awaited" });
            if (made.current.size > most) made.current.delete(made.current.keys().next().value!);
          } else if (d && e.kind === "chosen") {
            d.outcome = e.position ? "bought an item" : "bought nothing";
            d.taken = (e.taken ?? [{ position: e.position ?? 0 }]).flatMap((t) => d.shown[t.position - 1] ?? []);
          }
          else if (d && (e.kind === "expired" || e.kind === "evicted")) d.outcome = e.kind === "expired" ? "nothing reported in time" : "left memory";
          dirty = true;
        }
      },
      (why) => {
        [isLive, failure, dirty] = [why === undefined, why, true];
      },
    );
    void (async () => {
      while (!stop.signal.aborted) {
        try {
          return await begin((await get<{ entry: number }>("readyz", stop.signal)).entry);
        } catch (why) {
          [failure, dirty] = [why, true];
        }
        await new Promise((go) => setTimeout(go, 3000));
      }
    })();
    const timer = setInterval(() => {
      if (isLive && made.current.size === 0 && ++quiet === 2 && reach < earlier.length - 1) setReach(reach + 1);
      const waits = !!document.querySelector(`main tbody:${hovers ? "is(:hover, :focus-within)" : "focus-within"}`);
      if (!dirty && isLive) set((s) => (s.perSecond === 0 && s.waits === waits ? s : { ...s, perSecond: 0, waits }));
      if (dirty) set((s) => ({ rows: waits ? s.rows : [...made.current.values()].reverse().map((d) => ({ ...d })), waits, ...(isLive ? { perSecond: fresh } : {}), ...(failure ? { failure } : {}) }));
      [fresh, dirty] = [0, dirty && waits];
    }, 1000);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [name, paused, hidden, reach]);
  return { ...state, paused, pause, looked: reach === earlier.length - 1 };
}
