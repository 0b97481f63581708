import { useEffect, useState } from "preact/hooks";

// State is what a view knows of what it asks for: the last answer stays while a later one fails.
export interface State<T> {
  value?: T;
  failure?: unknown;
}

// usePoll asks again every period milliseconds after the last answer, at once when key changes, and not while the page is hidden.
export function usePoll<T>(ask: (signal: AbortSignal) => Promise<T>, key: string, period = 1000): State<T> {
  const [state, set] = useState<State<T>>({});
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    set({});
    const turn = async () => {
      if (!document.hidden) {
        try {
          const value = await ask(stop.signal);
          if (!stop.signal.aborted) set({ value });
        } catch (failure) {
          if (!stop.signal.aborted) set((before) => ({ ...before, failure }));
        }
      }
      if (!stop.signal.aborted) timer = window.setTimeout(turn, period);
    };
    void turn();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [key, period]);
  return state;
}
