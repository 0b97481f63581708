import { useState } from "preact/hooks";

// spans are the lengths of time that a page looks back, in seconds.
export const spans: [string, number][] = [["1 hour", 3600], ["24 hours", 86_400], ["7 days", 604_800], ["30 days", 2_592_000], ["All", 0]];

let last = 0; // all pages look back equally far, so that a number is the same on each

// useSpan returns how far the reader wants to look back.
export function useSpan(): [number, (to: number) => void] {
  const [seconds, set] = useState(last);
  return [seconds, (to) => set((last = to))];
}
