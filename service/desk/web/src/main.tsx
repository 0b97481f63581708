import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { address, match, routes } from "./routes";
import "./style.css";

function useAddress(): string {
  const [at, move] = useState(location.hash.slice(1) || "/");
  useEffect(() => {
    const moved = () => move(location.hash.slice(1) || "/");
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return at;
}

function Desk() {
  const found = match(useAddress());
  const View = (found?.route ?? routes[0]!).view;
  return (
    <>
      <button class="skip" type="button" onClick={() => document.getElementById("main")!.focus()}>Skip to the content</button>
      <header>
        <a class="brand" href={address()}>Vitrine</a>
        <nav aria-label="Views">
          <a href={address()}>Overview</a>
          <a href="docs">Documentation</a>
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <View {...found?.parameters} />
      </main>
    </>
  );
}

render(<Desk />, document.body);
