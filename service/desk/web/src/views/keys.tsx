import { get } from "../api";
import { usePoll } from "../poll";
import { useMay } from "../session";
import { Card, count, Empty, Failure, Loading, Table } from "../ui";
import { Command } from "../command";

interface Key {
  name: string;
  scopes: string[];
  placements?: string[];
  sessions: number;
}

export default function Keys() {
  return useMay("admin") ? <List /> : <Empty>A key with the scope admin lists the keys.</Empty>;
}

function List() {
  const { value, failure } = usePoll((signal) => get<{ required: boolean; keys: Key[] }>("v1/keys", signal), "", 10_000);
  if (!value) return failure ? <Failure of={failure} /> : <Loading />;
  return (
    <Card title="Keys">
      {failure ? <Failure of={failure} /> : null}
      {value.required ? (
        <Table
          caption="Keys"
          rows={value.keys}
          empty="There are no keys."
          columns={[
            { title: "Name", cell: (k) => k.name, text: true },
            { title: "Scopes", cell: (k) => k.scopes.join(", "), text: true },
            { title: "Placements", cell: (k) => k.placements?.join(", ") ?? "all", text: true },
            { title: "Signed in", cell: (k) => count(k.sessions) },
          ]}
        />
      ) : null}
      {value.required ? (
        <>
          <p>The service has only hashes of the tokens. These commands change the file of keys, and the service notices it within a second:</p>
          <Command text={"vitrine keys add keys.toml shop --scopes decide,outcome\nvitrine keys rotate keys.toml shop\nvitrine keys remove keys.toml shop"} />
        </>
      ) : (
        <>
          <p>The service asks for no key, so it answers requests from this machine only. To let others in, make a key, and name the file in the configuration, <code>keys = "keys.toml"</code>:</p>
          <Command text="vitrine keys add keys.toml desk --scopes read,admin" />
        </>
      )}
    </Card>
  );
}
