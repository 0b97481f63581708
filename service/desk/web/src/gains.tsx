import type { Interval } from "./experiment-report";
import { count, number } from "./ui";

// Gain is what a placement earns more than what it is compared with: see the schema of the OpenAPI document.
export interface Gain {
  variant?: string;
  over: string;
  randomized: boolean;
  decisions: number;
  per_decision: Interval;
  total: Interval;
}

const digits = { maximumSignificantDigits: 3, signDisplay: "exceptZero" } as const;
const range = (i: Interval) => `${number(i.low, digits)} to ${number(i.high, digits)}`;

// Gains answer whether a placement earns. Every page shows them like this.
export function Gains(props: { of: Gain[] }) {
  if (props.of.length === 0) return <p class="empty">No comparison yet. Turn on explore to show random pages to a few shoppers and measure the difference, or run an experiment.</p>;
  return (
    <>
      {props.of.map((g) => (
        <p class="sum" key={`${g.variant} ${g.over}`}>
          {g.variant ? `${g.variant} earns` : "Earned"} <strong>{number(g.total.estimate, digits)}</strong> over {g.variant ? g.over : g.over === "baseline" ? "the baseline" : g.over} in {count(g.decisions)} decisions <span class="nowrap">({range(g.total)})</span>.{" "}
          <span class="quiet">{number(g.per_decision.estimate, digits)} a decision <span class="nowrap">({range(g.per_decision)})</span>, with 95 % at all times.{g.randomized ? "" : " Both were shown at different times, and the difference of these times counts too."}</span>
        </p>
      ))}
    </>
  );
}
