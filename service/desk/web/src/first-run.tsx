import type { ComponentChildren } from "preact";
import { useContext, useState } from "preact/hooks";
import { get, nameOf, placement } from "./api";
import { Command } from "./command";
import { usePoll } from "./poll";
import { address } from "./address";
import { here, languages, sample, type Language, type Step } from "./samples";
import { SessionContext, useMay } from "./session";
import { Card, count, duties, Failure, plural } from "./ui";

interface Stats {
  decisions: number;
  outcomes: number;
  late: number;
  learned: number;
}

interface Config {
  notes?: string[];
  features: { name: string; kind: string; from?: string; history?: string }[];
}

// differences says how a placement's requests differ from the example.
function differences(c: Config): string {
  const sent = c.features.filter((f) => f.kind !== "cross" && !f.history).map((f) => (f.from === "shopper" ? `${f.name} of the shopper` : `${f.name} of each item`));
  const said = sent.join() === "price of each item" ? [] : [`In place of price, send what this placement knows: ${sent.join(", ")}.`];
  return [...said, ...duties(c)].join(" ");
}

// FirstRun walks through the first requests of a placement, and notices what has happened. found is a placement that exists already;
// done closes it.
export default function FirstRun(props: { found?: string | undefined; done: () => void }) {
  const [chosen, choose] = useState("home");
  const [language, speak] = useState<Language>("curl");
  const session = useContext(SessionContext);
  const may = useMay("admin");
  const name = props.found ?? (chosen.trim() || "home");
  const { value, failure } = usePoll(
    async (signal) => {
      const list = await get<{ placements: { name: string }[] }>("v1/placements", signal);
      if (!list.placements.some((p) => p.name === name)) return null;
      const [stats, config] = await Promise.all([get<Stats>(placement(name, "stats"), signal), get<Config>(placement(name), signal)]);
      return { ...stats, differs: differences(config) };
    },
    name,
    2000,
  );
  const at = here();
  const done = [Boolean(value), (value?.decisions ?? 0) > 0, (value?.outcomes ?? 0) + (value?.late ?? 0) > 0, (value?.learned ?? 0) > 0];
  const next = done.indexOf(false);
  const code = (step: Step) => <Command text={sample(language, step, at, name, session.required)} />;
  const step = (k: number, title: string, said: string, children: ComponentChildren) => (
    <li class={done[k] ? "done" : k === next ? "next" : ""} aria-current={k === next ? "step" : undefined}>
      <h3>{title} {done[k] ? <span class="badge good">Done</span> : k === next ? <span class="badge waiting">Next</span> : null}</h3>
      {done[k] ? <p class="quiet">{said}</p> : children}
    </li>
  );
  return (
    <Card title={next < 0 ? "Your placement works" : "Your placement, in four steps"}>
      <p>A placement is a spot in your shop where Vitrine chooses what to show: a row on the home page, the cart, a newsletter. Copy each request and send it. This page notices when it arrives.</p>
      {failure ? <Failure of={failure} /> : null}
      <fieldset class="segments">
        <legend>Your language</legend>
        {languages.map((l) => <label><input type="radio" name="language" checked={l === language} onChange={() => speak(l)} /> {l}</label>)}
      </fieldset>
      {session.required ? <p class="quiet">The requests read an API key from <code>VITRINE_KEY</code>. Make one with <code>vitrine keys add keys.toml shop --scopes read,decide,outcome,admin</code>.</p> : null}
      <ol class="steps">
        {step(0, "Create the placement", `“${name}” is ready.`, (
          <>
            {props.found ? null : (
              <div class="field">
                <label for="first-name">Name</label>
                <input id="first-name" type="text" maxLength={64} value={chosen} spellcheck={false} aria-describedby="first-name-help" onInput={(e) => choose(nameOf(e.currentTarget.value))} />
                <p class="help" id="first-name-help">Letters, digits and . _ - : only.</p>
              </div>
            )}
            <p>2% of pages show random items, so that the desk can say what Vitrine earns.</p>
            {code("create")}
            {may ? <p>Or <a href={address("new")}>fill in a form</a> instead.</p> : null}
          </>
        ))}
        {step(1, "Ask which items to show", `Vitrine has answered ${plural(value?.decisions, "request")}.`, (
          <>
            <p>Send the items that could be shown, with their prices and the revenue if one is bought.{value?.differs ? <strong> {value.differs}</strong> : null}</p>
            {code("ask")}
          </>
        ))}
        {step(2, "Report what the shopper took", `${count((value?.outcomes ?? 0) + (value?.late ?? 0))} reported.`, (
          <>
            <p>Report pages without a purchase too: Vitrine learns from both.</p>
            {code("report")}
          </>
        ))}
        {step(3, "Watch it learn", `Vitrine has learned from ${plural(value?.learned, "page")}.`, (
          <p>Each report changes what Vitrine shows next. Tastes become visible after some hundred pages.</p>
        ))}
      </ol>
      {props.found ? (
        <div class="controls">
          {next < 0 ? <a class="button main" href={address("placements", name)} onClick={props.done}>Look at “{name}”</a> : null}
          <a class="button" href={address()} onClick={props.done}>Go to the overview</a>
        </div>
      ) : null}
    </Card>
  );
}
