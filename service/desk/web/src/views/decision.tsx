import { useState } from "preact/hooks";
import { get, placement, Problem } from "../api";
import { Why, type Answer, type Explanation } from "../explain";
import { usePoll } from "../poll";
import { useCurrency, useProducts } from "../products";
import { address } from "../address";
import { Failure, Loading, moment, price } from "../ui";

interface Decision extends Answer {
  decision_id: string;
  time: string;
  status: "open" | "chosen" | "expired" | "deferred" | "withdrawn" | "evicted" | "late";
  choice: string | null;
  choices?: { item: string; quantity: number; value: number }[];
  earned: number;
  variant?: string;
  corrections?: { id: string; value?: number }[];
}

const ends: Record<Decision["status"], string> = {
  open: "Its outcome is still awaited.",
  chosen: "",
  expired: "No outcome came in time, which counts as nothing bought.",
  deferred: "It waits until the page is shown.",
  withdrawn: "The page was not shown in time.",
  evicted: "It left memory before its outcome came.",
  late: "The outcome came too late to be learned, but its revenue counts.",
};

// Bought names the products that the shopper bought.
function Bought({ of: d, currency, product }: { of: Decision; currency: string | undefined; product: (id: string) => { title: string } }) {
  const list = d.choices ?? [{ item: d.choice ?? "", quantity: 1, value: null }];
  return <>{list.map((c, i) => <>{i > 0 ? ", " : ""}{c.quantity > 1 ? `${c.quantity} × ` : ""}<strong><bdi>{product(c.item).title}</bdi></strong>{c.value === null ? "" : ` for ${price(c.value, currency)}`}</>)}</>;
}

// DecisionView says why a page was shown.
export default function DecisionView(props: { name: string; id: string }) {
  const { name } = props;
  const [forgotten, setForgotten] = useState(false);
  const { value, failure } = usePoll(
    async (signal) => {
      const decision = placement(name, "decisions", props.id);
      const ask = (search: string) => Promise.all([get<Decision>(decision + search, signal), get<Explanation>(`${decision}/explanation${search}`, signal)]);
      try {
        return await ask(forgotten ? "?search=log" : "");
      } catch (problem) {
        if (forgotten || !(problem instanceof Problem) || problem.status !== 404) throw problem;
        setForgotten(true); // the whole log may still have it
        return await ask("?search=log");
      }
    },
    `${name} ${props.id}`,
    forgotten ? 3_600_000 : 10_000,
  );
  const d = value?.[0];
  const currency = useCurrency(name);
  const taken = d?.choices?.map((c) => c.item) ?? (d?.choice ? [d.choice] : []);
  const product = useProducts(name, taken);
  const back = <p><a href={address("placements", name, "decisions")}>All decisions of {name}</a></p>;
  if (!value || !d) return <>{back}{failure ? <Failure of={failure} /> : <Loading />}</>;
  const [, why] = value;
  const again = new URLSearchParams((why.shopper ?? []).filter((f) => f.value !== null).map((f) => [f.feature, String(f.value)]));
  const tryIt = address("placements", name, "try") + (again.size > 0 ? `?${again}` : "");
  return (
    <>
      {back}
      <div class="head">
        <p>
          {d.status === "deferred" || d.status === "withdrawn" ? "Made" : "Shown"} {moment(d.time)}{d.variant === "holdout" ? " to a shopper who always sees your own page" : d.variant ? `, in the variant ${d.variant}` : ""}. {ends[d.status]}
          {d.status === "chosen" || d.status === "late" ? (d.choice === null && !d.corrections ? " The shopper bought nothing." : <> The shopper bought {d.choice === null ? "nothing at first" : <Bought of={d} currency={currency} product={product} />}, which has earned {price(d.earned, currency)}{d.corrections ? `, with corrections: ${d.corrections.map((c) => (c.value === undefined ? `${c.id} (withdrawn)` : `${c.id} (${price(c.value, currency)})`)).join(", ")}` : ""}.</>) : null}
        </p>
        <span class="quiet id">{d.decision_id}</span>
        <a class="button" href={tryIt}>Try another visitor</a>
      </div>
      <Why of={why} answer={d} currency={currency} taken={taken} />
    </>
  );
}
