import { useEffect, useState } from "preact/hooks";

// State is what a view knows of what it asks for: the last answer stays while a later one fails.
export interface State<T> {
  value?: T;
  failure?: unknown;
}

// usePoll asks again every period milliseconds after the last answer, at once when key or turn changes or the page is shown
// again, and not while it is hidden. The last answer stays until the key changes.
export function usePoll<T>(ask: (signal: AbortSignal) => Promise<T>, key: string, period = 1000, turn = 0): State<T> {
  const [state, set] = useState<State<T>>({});
  useEffect(() => set({}), [key]);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0, asking = false;
    const again = async () => {
      clearTimeout(timer);
      if (asking) return;
      if (!document.hidden) {
        asking = true;
        try {
          const value = await ask(stop.signal);
          if (!stop.signal.aborted) set({ value });
        } catch (failure) {
          if (!stop.signal.aborted) set((before) => ({ ...before, failure }));
        }
        asking = false;
      }
      if (!stop.signal.aborted) timer = window.setTimeout(again, period);
    };
    void again();
    document.addEventListener("visibilitychange", again);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [key, period, turn]);
  return state;
}
