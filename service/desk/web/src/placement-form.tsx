import { useEffect, useState } from "preact/hooks";
import { get, placement, request } from "./api";
import { Field, PolicyField, without, type PolicyEntry, type PolicyList } from "./form";
import { apiDocument, type Document } from "./schema";
import { Card, count, Failure, Loading } from "./ui";

export type Config = Record<string, any>;

interface Preview {
  change: "none" | "create" | "keep" | "restart" | "end" | "adopt";
  placement: Config;
  fields?: string[];
  lost?: { rounds: number; versions: number };
  can_relearn: boolean;
  max_size?: number;
}

// These members come first, and the others of the schema follow below.
const main = ["mode", "explore", "explore_share", "max_size"];
const own = ["features", "policy"];

// PlacementForm edits a configuration by the schema of the API, and says what a change would do before it makes it. tag is
// the ETag of a placement that exists.
export function PlacementForm(props: { name: string; config: Config; tag?: string | undefined; done: () => void }) {
  const [config, setConfig] = useState(props.config);
  const [known, setKnown] = useState<{ doc: Document; policies: PolicyEntry[] }>();
  const [preview, setPreview] = useState<Preview>();
  const [how, setHow] = useState("relearn=log");
  const [failure, fail] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    Promise.all([apiDocument(), get<PolicyList>("v1/policies")]).then(([doc, list]) => setKnown({ doc, policies: list.policies }), fail);
  }, []);
  if (!known) return failure ? <Failure of={failure} /> : <Loading />;
  const schema = known.doc.components.schemas["Placement"] ?? {};
  const members = Object.entries(schema.properties ?? {}).filter(([, s]) => !s.readOnly).map(([n]) => n);
  const more = members.filter((n) => !main.includes(n) && !own.includes(n));
  const set = (name: string) => (value: any) => {
    setPreview(undefined);
    setConfig((before) => without({ ...before, [name]: value }));
  };
  const field = (name: string) => <Field key={name} doc={known.doc} name={name} schema={schema.properties![name]!} value={config[name]} required={name === "max_size"} change={set(name)} />;
  const headers: Record<string, string> = props.tag ? { "If-Match": props.tag } : { "If-None-Match": "*" };
  const act = async (what: () => Promise<void>) => {
    setBusy(true);
    fail(undefined);
    try {
      await what();
    } catch (problem) {
      fail(problem);
    }
    setBusy(false);
  };
  const ask = (e: Event) => {
    e.preventDefault();
    void act(async () => {
      const v = await request<Preview>("POST", placement(props.name, "preview"), { body: config, headers });
      setPreview(v);
      setHow(v.can_relearn ? "relearn=log" : "reset=true");
    });
  };
  const make = () => act(async () => {
    const query = preview!.change === "end" ? "?reset=true" : preview!.change === "restart" && preview!.lost ? "?" + how : "";
    await request("PUT", placement(props.name) + query, { body: config, headers });
    props.done();
  });
  return (
    <form class="wide" onSubmit={ask}>
      <div class="fields">{main.filter((n) => members.includes(n)).map(field)}</div>
      {field("features")}
      <PolicyField policies={known.policies} value={config["policy"]} change={set("policy")} />
      <details>
        <summary>More settings</summary>
        <div class="fields">{more.map(field)}</div>
      </details>
      {failure ? <Failure of={failure} /> : null}
      <div class="controls"><button class={preview ? "" : "main"} disabled={busy}>See what this does</button></div>
      {preview ? (
        <Card title="What this does">
          <Effect of={preview} before={props.config} isNew={!props.tag} />
          {preview.change === "restart" && preview.lost ? (
            <fieldset>
              <legend>The learner</legend>
              {preview.can_relearn ? (
                <label class="choice"><input type="radio" name="how" checked={how === "relearn=log"} onChange={() => setHow("relearn=log")} /> Another learner first learns from the log, while the present one decides{preview.max_size ? `. It leaves out decisions that showed more than ${preview.max_size} items` : ""}</label>
              ) : null}
              <label class="choice"><input type="radio" name="how" checked={how === "reset=true"} onChange={() => setHow("reset=true")} /> It begins again, and has learned nothing. The present one is kept as a version to roll back to</label>
            </fieldset>
          ) : null}
          {preview.change === "none" ? null : <button type="button" class="main" disabled={busy} onClick={make}>{props.tag ? "Make the change" : "Create the placement"}</button>}
        </Card>
      ) : null}
    </form>
  );
}

// Effect says in words what a change does.
function Effect(props: { of: Preview; before: Config; isNew: boolean }) {
  const { of: p, before } = props;
  const changed = Object.keys({ ...before, ...p.placement }).filter((n) => n !== "notes" && n !== "warnings" && JSON.stringify(before[n]) !== JSON.stringify(p.placement[n]));
  let text = "Nothing changes: the placement has this configuration.";
  if (p.change === "create") text = "It makes a placement, whose learner begins with nothing.";
  if (p.change === "keep") text = "The learner keeps what it has learned.";
  if (p.change === "end") text = `The experiment ends, and the ${count(p.lost?.rounds)} rounds that the learners of its variants have learned are lost.`;
  if (p.change === "adopt") text = "The experiment ends, and the learner of the variant with this policy decides, with what it has learned. The present one is kept as a version.";
  if (p.change === "restart") {
    text = p.lost
      ? `The learner would forget ${count(p.lost.rounds)} rounds that it has learned, because it depends on ${(p.fields ?? []).join(", ")}.`
      : "Another learner begins. The present one has learned nothing yet.";
  }
  const messages: string[] = p.placement["warnings"] ?? [];
  const notes: string[] = p.placement["notes"] ?? [];
  return (
    <>
      <p class={p.lost ? "warning" : ""}>{text}</p>
      {messages.length > 0 ? <ul class="health">{messages.map((m) => <li class="warning"><strong>Warning:</strong> {m}</li>)}</ul> : null}
      {notes.length > 0 ? <ul class="health">{notes.map((m) => <li>{m}</li>)}</ul> : null}
      <Differences before={props.isNew ? {} : before} after={p.placement} names={changed} />
    </>
  );
}

// Differences lists members of two configurations that differ.
export function Differences(props: { before: Config; after: Config; names: string[]; titles?: [string, string] }) {
  if (props.names.length === 0) return null;
  const show = (v: unknown) => (v === undefined ? "–" : typeof v === "string" ? v : JSON.stringify(v));
  const [before, after] = props.titles ?? ["Before", "After"];
  const isNew = Object.keys(props.before).length === 0;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="What differs">
      <table>
        <caption>What differs</caption>
        <thead><tr><th scope="col" class="text">Setting</th>{isNew ? null : <th scope="col" class="text">{before}</th>}<th scope="col" class="text">{isNew ? "Value" : after}</th></tr></thead>
        <tbody>
          {props.names.map((n) => (
            <tr><th scope="row" class="text">{n.replaceAll("_", " ")}</th>{isNew ? null : <td class="text"><code>{show(props.before[n])}</code></td>}<td class="text"><code>{show(props.after[n])}</code></td></tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
