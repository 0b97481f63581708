import { useState } from "preact/hooks";
import { Labelled } from "./form";
import type { Operation } from "./schema";
import { Failure } from "./ui";

// TryIt sends a request to this service, as the reader.
export function TryIt(props: { method: string; path: string; operation: Operation }) {
  const { method, path, operation } = props;
  const json = operation.requestBody?.content["application/json"];
  const [values, setValues] = useState<Record<string, string>>({});
  const [body, setBody] = useState(json ? JSON.stringify(json.example ?? {}, null, 2) : "");
  const [answer, setAnswer] = useState<{ head: string; body: string }>();
  const [failure, fail] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  if (Object.values(operation.responses).some((r) => r.content?.["text/event-stream"])) return <p class="empty">It does not end, so it cannot be tried here.</p>;
  const send = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    fail(undefined);
    setAnswer(undefined);
    const query = new URLSearchParams();
    const headers = new Headers();
    let at = path.slice(1);
    for (const p of operation.parameters ?? []) {
      const value = values[p.name] ?? "";
      if (p.in === "path") at = at.replace(`{${p.name}}`, encodeURIComponent(value));
      else if (value !== "" && p.in === "query") query.set(p.name, value);
      else if (value !== "") headers.set(p.name, value);
    }
    if (json) headers.set("Content-Type", "application/json");
    try {
      const a = await fetch(at + (query.size > 0 ? `?${query}` : ""), { method, headers, ...(json ? { body } : {}) });
      const text = await a.text();
      const told = ["ETag", "Location", "Retry-After"].filter((h) => a.headers.has(h)).map((h) => `${h}: ${a.headers.get(h)}`);
      setAnswer({ head: [`${a.status} ${a.statusText}`, ...told].join("\n"), body: pretty(text) });
    } catch (problem) {
      fail(problem);
    }
    setBusy(false);
  };
  const writes = method !== "GET";
  return (
    <form class="wide" onSubmit={send}>
      <h3>Try it</h3>
      <div class="fields">
        {operation.parameters?.map((p) => (
          <Labelled name={p.name} key={p.name}>
            {(id) => p.schema?.enum
              ? <select id={id} required={p.required} value={values[p.name] ?? ""} onChange={(e) => setValues({ ...values, [p.name]: e.currentTarget.value })}><option value="">–</option>{p.schema.enum.map((v) => <option value={v}>{v}</option>)}</select>
              : <input id={id} type="text" required={p.required} value={values[p.name] ?? ""} onInput={(e) => setValues({ ...values, [p.name]: e.currentTarget.value })} />}
          </Labelled>
        ))}
      </div>
      {json ? <Labelled name="body">{(id) => <textarea id={id} class="code" rows={Math.min(body.split("\n").length + 1, 20)} spellcheck={false} value={body} onInput={(e) => setBody(e.currentTarget.value)} />}</Labelled> : null}
      <div class="controls"><button class={writes ? "danger" : "main"} disabled={busy}>Send</button>{writes ? <span class="warning">This is real: the service does it.</span> : null}</div>
      {failure ? <Failure of={failure} /> : null}
      {answer ? <div role="status"><pre tabIndex={0}>{answer.head}</pre>{answer.body ? <pre class="long" tabIndex={0}>{answer.body}</pre> : null}</div> : null}
    </form>
  );
}

// pretty lays out JSON, and leaves other texts. A page cannot show all of a long one.
function pretty(text: string): string {
  const limit = 50_000;
  try {
    text = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // not JSON
  }
  return text.length > limit ? text.slice(0, limit) + "\n…" : text;
}
