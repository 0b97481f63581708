import { useRef } from "preact/hooks";

// useOnce returns a function that runs an action, and ignores others until it has ended: a second click sends nothing.
export function useOnce() {
  const busy = useRef(false);
  return async (what: () => Promise<void>) => {
    if (busy.current) return;
    busy.current = true;
    try {
      await what();
    } finally {
      busy.current = false;
    }
  };
}
