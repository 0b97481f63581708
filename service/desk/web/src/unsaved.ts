import { useLayoutEffect, useState } from "preact/hooks";

let forms = 0; // with changes that are not saved

// useUnsaved returns what a form calls when it was edited and when it was saved. In between, leaving the page asks first.
export function useUnsaved(): [edited: () => void, saved: () => void] {
  const [is, set] = useState(false);
  useLayoutEffect(() => {
    if (!is) return;
    const ask = (e: Event) => e.preventDefault(); // the browser asks
    forms++;
    addEventListener("beforeunload", ask);
    return () => {
      forms--;
      removeEventListener("beforeunload", ask);
    };
  }, [is]);
  return [() => set(true), () => set(false)];
}

// unsaved reports whether a form of the page contains changes.
export const unsaved = () => forms > 0;

// mayLeave asks before a view goes whose form has changes.
export function mayLeave(): boolean {
  return !unsaved() || confirm("Leave this page? The changes in its form are not saved.");
}
