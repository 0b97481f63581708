import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { placement, Problem, request, requestTagged } from "../api";
import { useOnce } from "../once";
import { changed, Differences, PlacementForm, type Config } from "../placement-form";
import { Relearning } from "../relearning";
import { address } from "../address";
import { useMay } from "../session";
import { Card, Failure, Loading, toTop } from "../ui";

export default function Settings(props: { name: string }) {
  const { name } = props;
  const may = useMay("admin");
  const [state, set] = useState<{ config: Config; tag: string; turn: number }>();
  const [failure, fail] = useState<unknown>();
  const [said, say] = useState<ComponentChildren>();
  const load = () => requestTagged<Config>(placement(name)).then(({ value, tag }) => {
    fail(undefined);
    set((before) => ({ config: value, tag, turn: (before?.turn ?? 0) + 1 }));
  }, fail);
  useEffect(() => void load(), [name]);
  if (!state) return failure ? <Failure of={failure} /> : <Loading />;
  const { notes, warnings, ...config } = state.config;
  const reload = () => {
    say(undefined);
    return load();
  };
  const done = (text: ComponentChildren) => {
    say(text);
    toTop();
    void load();
  };
  return (
    <>
      <p role="status" class={said ? "good" : "none"}>{said}</p>
      {failure ? <Failure of={failure} /> : null}
      <Relearning key={`learns ${state.turn}`} name={name} done={done} />
      <Card title="Settings">
        {(warnings ?? []).map((w: string) => <p class="warning">Warning: {w}</p>)}
        {may
          ? <PlacementForm key={state.turn} name={name} config={config} tag={state.tag} reload={() => void reload()} done={(query) => done(query === "?relearn=log" ? "Vitrine learns from the log first, and makes the change then." : <>The change is made. <a href={address("placements", name, "history")}>You can undo it.</a></>)} />
          : <><p class="empty">A key with the scope admin may change them.</p><Differences before={{}} after={config} names={changed({}, config)} /></>}
      </Card>
      {may ? <Delete name={name} tag={state.tag} reload={reload} /> : null}
    </>
  );
}

// Delete deletes a placement after its name was typed.
function Delete(props: { name: string; tag: string; reload: () => Promise<void> }) {
  const [typed, setTyped] = useState("");
  const [failure, fail] = useState<unknown>();
  const once = useOnce();
  const submit = (e: Event) => {
    e.preventDefault();
    void once(() => request("DELETE", placement(props.name), { headers: { "If-Match": props.tag } }).then(() => void (location.hash = address()), fail));
  };
  return (
    <Card title="Delete the placement">
      <form class="stack" onSubmit={submit}>
        <p>All visits, versions and what Vitrine has learned here go, and cannot be brought back from the desk. Requests get 404 from then on. To stop using Vitrine but keep what it knows, choose “Your own page” above. Every request must then send <code>baseline</code>, or it is refused.</p>
        <label for="typed">Type <strong><bdi>{props.name}</bdi></strong> to delete it</label>
        <input id="typed" type="text" autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        {failure ? <Failure of={failure} /> : null}
        {failure instanceof Problem && failure.status === 412 ? <button type="button" onClick={() => void props.reload().then(() => fail(undefined))}>Show the settings as they are now</button> : null}
        <div><button class="danger" disabled={typed !== props.name}>Delete {props.name}</button></div>
      </form>
    </Card>
  );
}
