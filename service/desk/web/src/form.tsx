import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { resolve, typeOf, type Document, type Schema } from "./schema";
import { number, plural, portion } from "./ui";

// A form edits a value of JSON by its schema. What is left empty is left out, so that it has its default.
interface Editor {
  doc: Document;
  schema: Schema;
  value: any;
  change: (value: any) => void;
}

// Labelled is a field with its name, its explanation and what it holds.
export function Labelled(props: { name: string; json?: string | undefined; help?: string | undefined; children: (id: string, helpID: string) => ComponentChildren }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{props.name}{props.json === undefined ? null : <> <code>{props.json}</code></>}</label>
      {props.children(id, id + "-help")}
      {props.help ? <p class="help" id={id + "-help"}>{props.help}</p> : null}
    </div>
  );
}

const words = (name: string) => name.replaceAll("_", " ");

// titles are the settings of a placement in the words of a merchandiser.
const titles: Record<string, string> = {
  max_size: "Items to show at most",
  min_size: "Items to show at least",
  mode: "Who decides",
  explore: "What is random",
  explore_share: "Share of visits with random items",
  attribution_window: "Wait for a sale",
  features: "What is known about items and shoppers",
  policy: "Way of learning",
  experiment: "Experiment",
  holdout_share: "Share of shoppers who always see your own page",
  limits: "Limits by group",
  capacity: "Space on the page",
  max_request_items: "Items that a request brings at most",
  horizon: "Visits to expect",
  seed: "Seed of random choices",
  fallback: "Shown during an alarm",
  learn_in_alarm: "Learn during an alarm",
  log_items: "Items kept in the log",
  memory_bytes: "Memory for open visits",
  include: "Pinned items",
  exclude: "Excluded items",
  currency: "Currency",
  catalogue_of: "Use the items of another placement",
  max_versions: "Versions to keep",
};

// title returns the name of a setting in words.
export const title = (name: string) => titles[name] ?? words(name);

const modes: Record<string, string> = { learn: "Vitrine", explore: "Vitrine, with random items for a few visits", experiment: "an experiment", shadow: "your own page" };

// Setting is the value of a setting, in words where there are some.
export function Setting(props: { name: string; value: unknown }) {
  const text = written(props.name, props.value);
  return typeof props.value === "object" && !["experiment", "limits"].includes(props.name) ? <code>{text}</code> : <bdi>{text}</bdi>;
}

function written(name: string, value: unknown): string {
  if (name === "mode") return modes[String(value ?? "learn")] ?? String(value);
  if (value === undefined) return "–";
  if (typeof value === "number") return name.endsWith("_share") ? portion(value) : number(value);
  if (name === "experiment") return `“\u2068${(value as { name: string }).name}\u2069”`;
  if (name === "limits") return (value as Limit[]).map(limitWords).join("; ");
  return typeof value === "string" ? value : JSON.stringify(value);
}

interface Limit { feature?: string; attribute?: string; group?: string; min?: number; max?: number }

const limitWords = (l: Limit) => `${[l.min ? `at least ${l.min}` : "", l.max === undefined ? "" : `at most ${l.max}`].filter(Boolean).join(" and ")} of ${l.group ?? `each ${l.feature ?? l.attribute}`}`;

// Field edits a member of an object.
export function Field(props: Editor & { name: string; required?: boolean }) {
  const { doc, value, change } = props;
  const schema = resolve(doc, props.schema);
  const ids = props.name === "include" || props.name === "exclude";
  const help = ids ? `${schema.description}; put an id with a comma in quotes` : props.schema.description ?? schema.description;
  const type = typeOf(schema);
  const name = title(props.name);
  const standard = schema.default === undefined ? "" : `default ${String(schema.default)}`;
  if (type === "array" && typeOf(resolve(doc, schema.items)) === "object") return <Rows {...props} schema={schema} help={help} />;
  return (
    <Labelled name={name} json={titles[props.name] ? props.name : undefined} help={help}>
      {(id, helpID) => {
        const common = { id, "aria-describedby": help ? helpID : undefined, required: props.required };
        if (schema.enum) {
          return (
            <select {...common} value={value ?? ""} onChange={(e) => change(e.currentTarget.value || undefined)}>
              {props.required ? null : <option value="">{standard || "–"}</option>}
              {schema.enum.map((v) => <option value={v}>{v}</option>)}
            </select>
          );
        }
        switch (type) {
          case "boolean":
            return <input {...common} required={false} type="checkbox" checked={value === true} onChange={(e) => change(e.currentTarget.checked || undefined)} />;
          case "integer":
          case "number":
            return (
              <NumberInput {...common} step={type === "integer" ? 1 : "any"} min={schema.minimum} max={schema.maximum} placeholder={standard} value={value}
                change={(v) => change(Number.isNaN(v) ? undefined : v)} />
            );
          case "string":
            return <input {...common} type="text" placeholder={standard} value={value ?? ""} onInput={(e) => change(e.currentTarget.value || undefined)} />;
          case "array":
            return <Lines common={common} value={value} ids={ids} change={change} />;
        }
        return <JSONText common={common} value={value} change={change} />;
      }}
    </Labelled>
  );
}

// NumberInput is a field for a number. It keeps the typed text until the reader leaves the field: if it wrote the number back,
// the "1." of a "1.5" would become a 1 with the cursor before it, and the 5 would make it 51.
export function NumberInput({ value, change, ...rest }: { value: number | undefined; change: (v: number) => void } & Record<string, unknown>) {
  const [typed, setTyped] = useState<string>();
  const input = (e: { currentTarget: HTMLInputElement }) => {
    setTyped(e.currentTarget.value);
    change(e.currentTarget.valueAsNumber);
  };
  return <input {...rest} type="number" value={typed ?? (Number.isNaN(value) ? "" : value ?? "")} onInput={input} onBlur={() => setTyped(undefined)} />;
}

// IDs are written one a line or with commas. An id is in quotes if its text would be read otherwise, with its quotes doubled.
const idText = (id: string) => (/[,\n]|^["\s]|\s$/.test(id) ? `"${id.replaceAll('"', '""')}"` : id);

// idsOf returns the ids of a text, undefined if there are none.
export function idsOf(text: string): string[] | undefined {
  const ids = [...text.matchAll(/[ \t]*"((?:[^"]|"")*)"[ \t]*(?=[,\n]|$)|[^,\n]+/g)].map(([all, quoted]) => quoted?.replaceAll('""', '"') ?? all.trim()).filter(Boolean);
  return ids.length > 0 ? ids : undefined;
}

// Lines edits a list of texts, one a line, or of ids. It keeps the typed text until the reader leaves the field.
function Lines(props: { common: object; value: string[] | undefined; ids: boolean; change: (v: any) => void }) {
  const [typed, setTyped] = useState<string>();
  const text = typed ?? (props.value ?? []).map((v) => (props.ids ? idText(v) : v)).join("\n");
  const input = (e: { currentTarget: HTMLTextAreaElement }) => {
    setTyped(e.currentTarget.value);
    const lines = e.currentTarget.value.split("\n").filter((v) => v !== "");
    props.change(props.ids ? idsOf(e.currentTarget.value) : lines.length > 0 ? lines : undefined);
  };
  return <textarea {...props.common} rows={Math.min(text.split("\n").length, 8)} placeholder={props.ids ? "one a line, or with commas" : "one a line"} value={text} onInput={input} onBlur={() => setTyped(undefined)} />;
}

// JSONText edits a value that has no form of its own, as JSON.
export function JSONText(props: { common?: object; value: unknown; change: (v: any) => void }) {
  const [text, setText] = useState(props.value === undefined ? "" : JSON.stringify(props.value));
  const input = (e: { currentTarget: HTMLInputElement }) => {
    const field = e.currentTarget;
    setText(field.value);
    try {
      props.change(field.value.trim() === "" ? undefined : JSON.parse(field.value));
      field.setCustomValidity("");
    } catch {
      field.setCustomValidity('This is not JSON. A text has quotes, as "acme".');
    }
  };
  return <input {...props.common} type="text" class="code" placeholder="JSON" value={text} onInput={input} />;
}

// applies reports whether a member is for a kind of a feature: the document says "of a number: …".
function applies(help: string | undefined, kind: unknown): boolean {
  const of = /^of an? ([^:]*):/.exec(help ?? "");
  return !of || typeof kind !== "string" || of[1]!.includes(kind);
}

// usual are the members that every feature needs. The others of a feature are under More.
const usual = ["name", "kind", "from", "values", "of"];

// Rows edits a list of objects.
function Rows(props: Editor & { name: string; help: string | undefined }) {
  const { doc, schema, change } = props;
  const item = resolve(doc, schema.items);
  const rows: any[] = props.value ?? [];
  const keys = useRef<number[]>([]), made = useRef(0); // what is typed stays with its row
  while (keys.current.length < rows.length) keys.current.push(made.current++);
  const box = useRef<HTMLFieldSetElement>(null), added = useRef(false);
  useEffect(() => {
    if (added.current) box.current!.querySelector<HTMLElement>(":scope > .item:nth-last-of-type(1) :is(input, select)")?.focus();
    added.current = false;
  }, [rows.length]);
  const set = (i: number, row: any) => change(rows.map((r, k) => (k === i ? row : r)));
  const needed = item.required ?? [];
  const names = [...needed, ...Object.keys(item.properties ?? {}).filter((n) => !needed.includes(n) && !item.properties![n]!.description?.endsWith("in a request only"))];
  const most = props.name === "features" ? usual : names;
  return (
    <fieldset ref={box}>
      <legend>{title(props.name)} <code>{props.name}</code></legend>
      {props.help ? <p class="help">{props.help}</p> : null}
      {rows.map((row, i) => {
        const fields = (of: string[]) => of.filter((n) => needed.includes(n) || applies(item.properties![n]!.description, row.kind)).map((n) => (
          <Field key={n + String(row.kind)} doc={doc} name={n} schema={item.properties![n]!} value={row[n]} required={needed.includes(n)} change={(v) => set(i, without({ ...row, [n]: v }))} />
        ));
        const more = fields(names.filter((n) => !most.includes(n)));
        return (
          <fieldset class="item" aria-label={`${words(props.name)} ${i + 1}`} key={keys.current[i]}>
            <div class="fields">{fields(most)}</div>
            {more.length > 0 ? <details><summary>More</summary><div class="fields">{more}</div></details> : null}
            <button type="button" onClick={() => { keys.current.splice(i, 1); change(rows.length > 1 ? rows.filter((_, k) => k !== i) : undefined); }}>Remove{typeof row.name === "string" && row.name ? ` ${row.name}` : ""}</button>
          </fieldset>
        );
      })}
      <button type="button" onClick={() => { added.current = true; change([...rows, {}]); }}>Add</button>
    </fieldset>
  );
}

// without leaves out members that have no value.
export function without(object: Record<string, any>): Record<string, any> {
  return Object.fromEntries(Object.entries(object).filter(([, v]) => v !== undefined));
}

// PolicyOption and PolicyEntry: see GET /v1/policies.
export interface PolicyOption {
  key: string;
  type: string;
  range?: string;
  default?: unknown;
  doc: string;
}

export interface PolicyEntry {
  name: string;
  doc: string;
  choose_when?: string;
  offer_cost?: string;
  round_cost?: string;
  options: PolicyOption[];
  default?: boolean;
}

export interface PolicyList {
  policies: PolicyEntry[];
  utilities: PolicyEntry[];
}

// PolicyField edits the policy of a placement and its settings.
export function PolicyField(props: { policies: PolicyEntry[]; value: any; change: (value: any) => void }) {
  const { policies, value, change } = props;
  const name = value?.name ?? "";
  const chosen = policies.find((p) => p.name === (name || policies.find((q) => q.default)?.name));
  return (
    <fieldset>
      <legend>{title("policy")} <code>policy</code></legend>
      <Labelled name="Name" help={chosen ? `${chosen.doc}.${chosen.choose_when ? ` Choose it ${chosen.choose_when}.` : ""}` : undefined}>
        {(id, helpID) => (
          <select id={id} aria-describedby={helpID} value={name} onChange={(e) => change(e.currentTarget.value ? { name: e.currentTarget.value } : undefined)}>
            {policies.map((p) => <option value={p.default && !name ? "" : p.name}>{p.name}{p.default ? " (default)" : ""}</option>)}
          </select>
        )}
      </Labelled>
      {chosen && chosen.options.length > 0 ? (
        <details>
          <summary>{plural(chosen.options.length, "setting")} of {chosen.name}</summary>
          <div class="fields">
            {chosen.options.map((o) => (
              <PolicyOptionField key={chosen.name + o.key} of={o} value={value?.[o.key]} change={(v) => change(without({ ...value, name: chosen.name, [o.key]: v }))} />
            ))}
          </div>
        </details>
      ) : null}
    </fieldset>
  );
}

function PolicyOptionField(props: { of: PolicyOption; value: any; change: (v: any) => void }) {
  const { of: o, value, change } = props;
  const standard = o.default === undefined ? "" : `default ${typeof o.default === "object" ? JSON.stringify(o.default) : String(o.default)}`;
  const schema: Schema = { description: o.doc + (o.range ? ` (${o.range})` : ""), default: o.default };
  switch (o.type) {
    case "integer":
    case "number":
      schema.type = o.type;
      break;
    case "true or false":
      schema.enum = ["true", "false"];
      return <Field doc={none} name={o.key} schema={schema} value={value === undefined ? undefined : String(value)} change={(v) => change(v === undefined ? undefined : v === "true")} />;
    case "string":
      schema.type = "string";
      if (o.range) schema.enum = o.range.split(", ");
      break;
    default:
      return <Labelled name={words(o.key)} help={`${schema.description}${standard ? `; ${standard}` : ""}`}>{(id, helpID) => <JSONText common={{ id, "aria-describedby": helpID }} value={value} change={change} />}</Labelled>;
  }
  return <Field doc={none} name={o.key} schema={schema} value={value} change={change} />;
}

const none: Document = { info: { title: "", version: "", description: "" }, tags: [], paths: {}, components: { schemas: {} } };
