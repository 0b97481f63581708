import { useState } from "preact/hooks";
import { nameOf } from "../api";
import { PlacementForm } from "../placement-form";
import { address } from "../address";
import { useMay } from "../session";
import { Card, Empty } from "../ui";

export default function New() {
  const [name, setName] = useState("");
  const [currency, setCurrency] = useState("");
  if (!useMay("admin")) return <Empty>A key with the scope admin may create placements.</Empty>;
  // 2% of visits see random pages, so that there is a comparison from the start.
  const config = { max_size: 3, features: [{ name: "price", kind: "number" }], mode: "explore", explore_share: 0.02 };
  return (
    <Card title="A spot where Vitrine chooses what to show">
      <div class="field">
        <label for="name">Name</label>
        <input id="name" type="text" maxLength={64} required value={name} aria-describedby="name-help" onInput={(e) => setName(nameOf(e.currentTarget.value))} />
        <p class="help" id="name-help">Such as home, cart or mail. Letters, digits and . _ - : only. Requests name it.</p>
      </div>
      <div class="field">
        <label for="currency">Currency</label>
        <input id="currency" type="text" maxLength={3} placeholder="EUR" value={currency} aria-describedby="currency-help" onInput={(e) => setCurrency(e.currentTarget.value.trim().toUpperCase())} />
        <p class="help" id="currency-help">Of the revenue that you report: three letters, such as EUR or USD.</p>
      </div>
      {name === "" ? <Empty>Name it first.</Empty> : <PlacementForm name={name} config={config} currency={currency || undefined} done={() => (location.hash = address("placements", name))} />}
    </Card>
  );
}
