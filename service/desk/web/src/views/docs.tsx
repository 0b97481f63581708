import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import type { PolicyEntry, PolicyList } from "../form";
import { address } from "../address";
import { apiDocument, resolve, typeOf, type Document, type Operation, type Schema } from "../schema";
import { TryIt } from "../try-it";
import { Card, Empty, Failure, Loading, Table } from "../ui";

// A page of the documentation shows parts of the API's own document, which has each fact once.
const pages: { id: string; title: string; page: (props: { doc: Document }) => ComponentChildren }[] = [
  { id: "placements", title: "Placements", page: Placements },
  { id: "features", title: "Features", page: Features },
  { id: "modes", title: "Modes", page: Modes },
  { id: "rules", title: "Rules", page: Rules },
  { id: "policies", title: "Policies", page: Policies },
  { id: "api", title: "API", page: API },
];

export default function Docs(props: { page?: string }) {
  const [doc, setDoc] = useState<Document>();
  const [failure, fail] = useState<unknown>();
  useEffect(() => void apiDocument().then(setDoc, fail), []);
  const current = props.page ?? pages[0]!.id;
  const found = pages.find((p) => p.id === current);
  return (
    <>
      <nav class="tabs" aria-label="Pages">{pages.map((p) => <a href={address("docs", p.id)} {...(p === found ? { "aria-current": "page" as const } : {})}>{p.title}</a>)}</nav>
      {failure ? <Failure of={failure} /> : !doc ? <Loading /> : found ? <found.page doc={doc} /> : <Empty>There is no page “{current}”.</Empty>}
    </>
  );
}

// kind says what a value is, in a few words.
function kind(doc: Document, schema: Schema): string {
  const s = resolve(doc, schema);
  const type = typeOf(s);
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(" or ");
  if (type === "array") return "list of " + (schema.items?.$ref ?? s.items?.$ref ?? typeOf(resolve(doc, s.items))).split("/").pop();
  const range = s.minimum !== undefined && s.maximum !== undefined ? `, ${s.minimum} to ${s.maximum}` : s.minimum !== undefined ? `, at least ${s.minimum}` : s.maximum !== undefined ? `, at most ${s.maximum}` : "";
  return (schema.$ref ? schema.$ref.split("/").pop()! : type === "any" ? "any JSON" : type) + range;
}

// named is the name of a value, with what it may be below.
const named = (name: string, value: string, standard: unknown, required = false) => (
  <><code>{name}</code><br /><small class="quiet">{value}{required ? ", required" : standard === undefined ? "" : <>, default <code>{JSON.stringify(standard)}</code></>}</small></>
);

// Members is a table of the members of a schema.
function Members(props: { doc: Document; of: string; only?: string[] }) {
  const { doc } = props;
  const schema = doc.components.schemas[props.of];
  if (!schema) return <Failure of={`The API's document has no schema ${props.of}.`} />;
  const required = schema.required ?? [];
  const names = Object.keys(schema.properties ?? {}).filter((n) => !props.only || props.only.includes(n));
  const rows = [...names.filter((n) => required.includes(n)), ...names.filter((n) => !required.includes(n))].map((name) => ({ name, schema: schema.properties![name]! }));
  return (
    <Table
      caption={props.of}
      rows={rows}
      empty="It has no members."
      columns={[
        { title: "Member", cell: (r) => named(r.name, kind(doc, r.schema), r.schema.default, required.includes(r.name)), text: true },
        { title: "Meaning", cell: (r) => r.schema.description ?? "", text: true },
      ]}
    />
  );
}

function Placements(props: { doc: Document }) {
  return (
    <>
      <Card title="A placement">
        <p>A placement is a place where items are shown, such as a row of the home page. It has features of its own, a policy that chooses, and a learner that learns from what shoppers take. Its configuration is JSON, and <a href={address("docs", "api")}>PUT</a> changes it; the settings of a placement show what a change would do first.</p>
        <Members doc={props.doc} of="Placement" />
      </Card>
      <Card title="A request">
        <p>A request asks what to show. Its items are in it, or in the placement's catalogue.</p>
        <Members doc={props.doc} of="DecideRequest" />
      </Card>
      <Card title="An answer">
        <Members doc={props.doc} of="Answer" />
        <p>The outcome tells which item was taken, or that none was. Without one within the attribution window the decision counts as none.</p>
        <Members doc={props.doc} of="Outcome" />
      </Card>
    </>
  );
}

function Features(props: { doc: Document }) {
  return (
    <Card title="Features">
      <p>A feature is something that is known about items or shoppers. Features become columns of numbers, from which the policy predicts utilities: a number is one column, a category one for each value, a text or an object some columns that words and members share by hashing, and a cross the products of two earlier ones.</p>
      <Members doc={props.doc} of="Feature" />
    </Card>
  );
}

function Modes(props: { doc: Document }) {
  return (
    <Card title="Modes">
      <p>The mode says who decides. A new placement can begin with shadow, which shows what the shop showed before; explore then compares the policy with chance while it sells.</p>
      <Members doc={props.doc} of="Placement" only={["mode", "explore", "explore_share", "fallback", "log_items", "experiment"]} />
    </Card>
  );
}

function Rules(props: { doc: Document }) {
  return (
    <>
      <Card title="Rules of a request">
        <p>Rules hold whatever the policy predicts. They may name items that a request does not have.</p>
        <Members doc={props.doc} of="DecideRequest" only={["min_size", "max_size", "include", "exclude", "limits", "capacity", "slots", "pinned", "filter", "candidates", "baseline"]} />
      </Card>
      <Card title="Limits">
        <p>A placement's <code>limits</code> and <code>capacity</code> hold for each request, and a request may have more.</p>
        <Members doc={props.doc} of="Limit" />
      </Card>
      {props.doc.components.schemas["Slot"] ? <Card title="Slots"><Members doc={props.doc} of="Slot" /></Card> : null}
    </>
  );
}

function Policies() {
  const [list, setList] = useState<PolicyList>();
  const [failure, fail] = useState<unknown>();
  useEffect(() => void get<PolicyList>("v1/policies").then(setList, fail), []);
  if (!list) return failure ? <Failure of={failure} /> : <Loading />;
  return (
    <>
      {list.policies.map((p) => <Policy of={p} />)}
      <Card title="Families of utilities">
        <p>Some policies have a setting <code>utility</code>, a table such as <code>{'{"kind":"linear"}'}</code>.</p>
      </Card>
      {list.utilities.map((p) => <Policy of={p} />)}
    </>
  );
}

function Policy(props: { of: PolicyEntry }) {
  const p = props.of;
  return (
    <Card title={p.default ? `${p.name} (default)` : p.name}>
      <p>{p.doc}.{p.choose_when ? ` Choose it ${p.choose_when}.` : ""}{p.offer_cost ? ` An offer costs O(${p.offer_cost}), a round O(${p.round_cost}).` : ""}</p>
      <Table
        caption={`Settings of ${p.name}`}
        rows={p.options}
        empty="It has no settings."
        columns={[
          { title: "Setting", cell: (o) => named(o.key, o.type + (o.range ? `: ${o.range}` : ""), o.default), text: true },
          { title: "Meaning", cell: (o) => o.doc, text: true },
        ]}
      />
    </Card>
  );
}

interface Listed {
  method: string;
  path: string;
  operation: Operation;
}

function API(props: { doc: Document }) {
  const [words, setWords] = useState("");
  const all: Listed[] = Object.entries(props.doc.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })));
  const shown = all.filter((l) => `${l.method} ${l.path} ${l.operation.summary}`.toLowerCase().includes(words.toLowerCase()));
  return (
    <>
      <div class="controls">
        <label>Find <input type="search" value={words} onInput={(e) => setWords(e.currentTarget.value)} /></label>
        <a href="openapi.json">OpenAPI document</a>
      </div>
      {shown.length === 0 ? <Empty>Nothing has “{words}” in its path or summary.</Empty> : null}
      {props.doc.tags.map((tag) => {
        const of = shown.filter((l) => l.operation.tags?.includes(tag.name));
        return of.length === 0 ? null : <Card title={tag.name}><p>{tag.description}</p>{of.map((l) => <Documented key={l.method + l.path} doc={props.doc} of={l} />)}</Card>;
      })}
    </>
  );
}

function Documented(props: { doc: Document; of: Listed }) {
  const { method, path, operation } = props.of;
  const [open, setOpen] = useState(false);
  const answers = Object.entries(operation.responses).map(([status, r]) => ({ status, description: r.description, schema: Object.values(r.content ?? {})[0]?.schema }));
  return (
    <details open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary><code><strong>{method}</strong> {path}</code></summary>
      {open ? (
        <>
          <p>{operation.summary} {operation.description?.replaceAll("`", "")}</p>
          {operation.parameters?.some((p) => p.in !== "path") ? (
            <Table
              caption={`Parameters of ${method} ${path}`}
              rows={operation.parameters.filter((p) => p.in !== "path")}
              empty=""
              columns={[
                { title: "Parameter", cell: (p) => <code>{p.name}</code>, text: true },
                { title: "In", cell: (p) => p.in, text: true, wide: true },
                { title: "Meaning", cell: (p) => p.description ?? "", text: true },
              ]}
            />
          ) : null}
          <Table
            caption={`Answers of ${method} ${path}`}
            rows={answers}
            empty=""
            columns={[
              { title: "Answer", cell: (a) => a.status, text: true },
              { title: "", cell: (a) => a.description, text: true },
              { title: "Body", cell: (a) => (a.schema ? kind(props.doc, a.schema) : ""), text: true },
            ]}
          />
          <TryIt method={method} path={path} operation={operation} />
        </>
      ) : null}
    </details>
  );
}
