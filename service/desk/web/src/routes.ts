import type { ComponentType } from "preact";
import { address } from "./address";
import { lazy } from "./lazy";

// A route is a view and its address after the "#". A part that begins with ":" is a parameter of the view.
export interface Route {
  path: string;
  title: string; // of the page, and of the tab
  view: ComponentType<Record<string, string>>;
  nav?: boolean; // whether the header leads to it
  open?: boolean; // whether it needs no key
  tab?: boolean; // whether it is a tab of a placement: its path is then "/placements/:name" and at most one part more
}

// routes has a line for each view. The tabs of a placement have the order of the lines.
export const routes: Route[] = [
  { path: "/", title: "Overview", view: lazy(() => import("./views/overview")), nav: true },
  { path: "/placements/:name", title: "Performance", view: lazy(() => import("./views/placement")), tab: true },
  { path: "/placements/:name/tastes", title: "Shoppers and tastes", view: lazy(() => import("./views/tastes")), tab: true },
  { path: "/placements/:name/items", title: "Items", view: lazy(() => import("./views/items")), tab: true },
  { path: "/placements/:name/decisions", title: "Decisions", view: lazy(() => import("./views/decisions")), tab: true },
  { path: "/placements/:name/decisions/:id", title: "Why this page?", view: lazy(() => import("./views/decision")) },
  { path: "/placements/:name/try", title: "Try a page", view: lazy(() => import("./views/try")), tab: true },
  { path: "/placements/:name/experiments", title: "Experiments", view: lazy(() => import("./views/experiments")), tab: true },
  { path: "/placements/:name/versions", title: "Versions", view: lazy(() => import("./views/versions")), tab: true },
  { path: "/placements/:name/history", title: "History", view: lazy(() => import("./views/history")), tab: true },
  { path: "/placements/:name/settings", title: "Settings", view: lazy(() => import("./views/settings")), tab: true },
  { path: "/new", title: "New placement", view: lazy(() => import("./views/new")) },
  { path: "/docs", title: "Documentation", view: lazy(() => import("./views/docs")), nav: true, open: true },
  { path: "/docs/:page", title: "Documentation", view: lazy(() => import("./views/docs")), open: true },
  { path: "/keys", title: "Keys", view: lazy(() => import("./views/keys")), nav: true },
];

// A service with a demonstration has a shop.
export const shop: Route | undefined = document.querySelector("meta[name=demo]") ? { path: "/shop", title: "Shop", view: lazy(() => import("./views/shop")) } : undefined;
if (shop) routes.push(shop);

// tabs are the views of a placement; the first one is at its own address.
export const tabs = routes.filter((r) => r.tab);

export interface Match {
  route: Route;
  parameters: Record<string, string>;
}

// match returns the route of an address and its parameters.
export function match(at: string): Match | undefined {
  const parts = at.split("?")[0]!.split("/").filter(Boolean);
  for (const route of routes) {
    const want = route.path.split("/").filter(Boolean);
    if (want.length !== parts.length) continue;
    const parameters: Record<string, string> = {};
    const same = want.every((w, i) => {
      if (!w.startsWith(":")) return w === parts[i];
      try {
        parameters[w.slice(1)] = decodeURIComponent(parts[i]!);
      } catch {
        return false; // not an address of the desk
      }
      return true;
    });
    if (same) return { route, parameters };
  }
}

// tabAddress returns the address of a tab of a placement.
export function tabAddress(name: string, tab: Route): string {
  return address("placements", name, ...tab.path.split("/").slice(3));
}
