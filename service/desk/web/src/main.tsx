import { render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { address } from "./address";
import { Boundary } from "./boundary";
import { reached, request, send } from "./api";
import { match, routes, shop, tabAddress, tabs } from "./routes";
import { SessionContext, SignIn, useSession } from "./session";
import { Empty, Failure, Loading } from "./ui";
import { mayLeave } from "./unsaved";
import "./style.css";

function useAddress(): string {
  const [at, move] = useState(location.hash.slice(1) || "/");
  useEffect(() => {
    const moved = () => {
      if (mayLeave()) move(location.hash.slice(1) || "/");
      else history.replaceState(null, "", "#" + at);
    };
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, [at]);
  return at;
}

// useArrival names the page after the view, and moves the focus to its heading when another view is shown: this tells a
// screen reader what happened, and the keyboard goes on from there.
function useArrival(at: string, title: string) {
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  useLayoutEffect(() => {
    document.title = title === "Vitrine" ? title : title + " – Vitrine";
  }, [title]);
  useLayoutEffect(() => {
    const tab = document.querySelector<HTMLElement>(".tabs [aria-current]");
    if (tab) tab.parentElement!.scrollLeft = tab.offsetLeft - tab.parentElement!.offsetLeft - 48; // with the tab before in sight
    if (!first.current) {
      scrollTo(0, 0);
      heading.current?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [at]);
  return heading;
}

// Lost says that the service does not answer, and since when: what the page shows is from before. Until the service answers
// it asks by itself, because not every view does.
function Lost() {
  const [since, setSince] = useState<number>();
  useEffect(() => {
    const told = (e: Event) => setSince((before) => ((e as CustomEvent<boolean>).detail ? undefined : (before ?? Date.now())));
    addEventListener(reached, told);
    return () => removeEventListener(reached, told);
  }, []);
  useEffect(() => {
    if (since === undefined) return;
    const timer = setInterval(() => void send("readyz", {}).catch(() => {}), 3000);
    return () => clearInterval(timer);
  }, [since]);
  return <div role="alert">{since === undefined ? null : <p class="lost">No connection to the service since {new Date(since).toLocaleTimeString()}. Everything on this page is from before. The page goes on by itself once the service answers.</p>}</div>;
}

const current = (is: boolean) => (is ? { "aria-current": "page" as const } : {});

function Desk() {
  const at = useAddress();
  const found = match(at);
  const name = found?.parameters["name"];
  const title = found ? found.route.title : "Not found";
  const heading = useArrival(at, name === undefined ? title : `${title} – ${name}`);
  const { session, failure, change } = useSession();
  const signOut = () => mayLeave() && request("DELETE", "v1/session").then(() => change({ required: true, scopes: [] }), () => location.reload());
  const View = found?.route.view;
  let content;
  if (!View) content = <Empty>There is no view at this address. <a href={address()}>Go to the overview.</a></Empty>;
  else if (found.route.open) content = <View {...found.parameters} />;
  else if (!session) content = failure ? <Failure of={failure} /> : <Loading />;
  else if (session.required && session.key === undefined) content = <SignIn done={change} />;
  else content = <>{session.ended ? <SignIn done={change} again name={name} /> : null}<View {...found.parameters} /></>;
  return (
    <SessionContext.Provider value={session ?? { required: true, scopes: [] }}>
      <button class="skip" type="button" onClick={() => document.getElementById("main")!.focus()}>Skip to the content</button>
      <header>
        <a class="brand" href={address()}>Vitrine</a>
        <nav aria-label="Desk">
          {shop ? <a href={address("shop")} {...current(found?.route === shop)}>Shop</a> : null}
          {routes.filter((r) => r.nav).map((r) => <a href={"#" + r.path} {...current(r === found?.route || at.startsWith(r.path + "/"))}>{r.title}</a>)}
        </nav>
        {session?.required && session.key === undefined ? <div class="end"><a href={address()}>Sign in</a></div> : null}
        {session?.key === undefined || session.ended ? null : (
          <div class="end">
            <span>Key: {session.key}</span>
            <button type="button" onClick={signOut}>Sign out</button>
          </div>
        )}
      </header>
      <Lost />
      <main id="main" tabIndex={-1}>
        <h1 ref={heading} tabIndex={-1}>{name ?? title}</h1>
        {name === undefined ? null : (
          <nav class="tabs" aria-label="Placement">
            {tabs.map((t) => <a href={tabAddress(name, t)} {...current(t === found?.route || found?.route.path.startsWith(t.path + "/:") === true)}>{t.title}</a>)}
          </nav>
        )}
        <Boundary key={at}>{content}</Boundary>
      </main>
    </SessionContext.Provider>
  );
}

// The page is also at /docs.
if (location.hash === "" && location.pathname.endsWith("/docs")) history.replaceState(null, "", "./#/docs");

render(<Desk />, document.body);
