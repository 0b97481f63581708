import { useState } from "preact/hooks";
import { PlacementForm } from "../placement-form";
import { tabAddress } from "../routes";
import { useMay } from "../session";
import { Card, Empty } from "../ui";

export default function New() {
  const [name, setName] = useState("");
  if (!useMay("admin")) return <Empty>A key with the scope admin may create placements.</Empty>;
  return (
    <Card title="A spot where Vitrine chooses what to show">
      <div class="field">
        <label for="name">Name</label>
        <input id="name" type="text" maxLength={64} required value={name} aria-describedby="name-help" onInput={(e) => setName(e.currentTarget.value.trim())} />
        <p class="help" id="name-help">Such as home, cart or mail. Letters, digits and . _ - : only. Requests name it.</p>
      </div>
      {name === "" ? <Empty>Name it first.</Empty> : <PlacementForm key="new" name={name} config={{ max_size: 3, features: [{ name: "price", kind: "number" }] }} done={() => (location.hash = tabAddress(name))} />}
    </Card>
  );
}
