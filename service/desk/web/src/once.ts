import { useRef } from "preact/hooks";

// useOnce returns a function that runs an action, and ignores others until it has ended: a second click sends nothing. The
// function returns whether the action ran.
export function useOnce() {
  const busy = useRef(false);
  return async (what: () => Promise<void>) => {
    if (busy.current) return false;
    busy.current = true;
    try {
      await what();
      return true;
    } finally {
      busy.current = false;
    }
  };
}
