import { address } from "./address";
import type { Entry, Health } from "./series";
import { amounts, moment } from "./ui";

// Trouble is what is wrong, before everything else: what happened, how unlikely that is, what Vitrine has done, what to do.
export function Trouble(props: { of: Health[]; name?: string; currency?: string | undefined; link?: boolean }) {
  const found = props.of.filter((h) => h.level === "bad" || h.level === "warning");
  if (found.length === 0) return null;
  const history = props.name === undefined ? undefined : address("placements", props.name, "history");
  return (
    <div class="troubles" role="region" aria-label={props.link && props.name ? `Trouble of ${props.name}` : "Trouble"}>
      {found.map((h) => (
        <div class={`trouble ${h.level}`} key={h.title ?? h.text}>
          <div class="head">
            <strong>{props.link && props.name ? `${props.name}: ` : ""}{amounts(h.title ?? h.text, props.currency)}</strong>
            {h.since ? <span class="quiet">since {moment(h.since)}</span> : null}
            {h.title && history ? <a class="button" href={history}>Investigate</a> : null}
          </div>
          {h.title ? <p>{amounts(h.text.slice(h.title.length).trim(), props.currency)}</p> : null}
        </div>
      ))}
    </div>
  );
}

// Badge is how a placement is, in a word.
export function Badge(props: { of: Entry }) {
  const worst = ["bad", "warning", "waiting"].find((l) => props.of.health.some((h) => h.level === l)) ?? (props.of.unwatched_decisions ? "unwatched" : "");
  const words: Record<string, string> = { bad: "Trouble", warning: "Look at this", waiting: "Waiting for the first outcome", unwatched: "Not watched yet" };
  return <span class={`badge ${worst || "good"}`}>{worst ? words[worst] : "Healthy"}</span>;
}
