import type { ComponentType } from "preact";
import { lazy } from "./lazy";

// A route is a view and its address after the "#". A part that begins with ":" is a parameter of the view.
export interface Route {
  path: string;
  view: ComponentType<Record<string, string>>;
}

// routes has a line for each view. The first one is shown where no other matches.
export const routes: Route[] = [
  { path: "/", view: lazy(() => import("./views/overview")) },
];

// match returns the route of an address and its parameters.
export function match(address: string): { route: Route; parameters: Record<string, string> } | undefined {
  const parts = address.split("/").filter(Boolean);
  for (const route of routes) {
    const want = route.path.split("/").filter(Boolean);
    if (want.length !== parts.length) continue;
    const parameters: Record<string, string> = {};
    const same = want.every((w, i) => {
      const part = parts[i]!;
      if (!w.startsWith(":")) return w === part;
      parameters[w.slice(1)] = decodeURIComponent(part);
      return true;
    });
    if (same) return { route, parameters };
  }
}

// address returns the address of a view: address("placements", name) is "#/placements/NAME", escaped.
export function address(...parts: string[]): string {
  return "#/" + parts.map(encodeURIComponent).join("/");
}
