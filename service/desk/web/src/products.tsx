import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, placement } from "./api";
import { usePoll } from "./poll";
import { price } from "./ui";

// CatalogueItem is the part of an item of the catalogue that the desk shows: see the OpenAPI document.
export interface CatalogueItem {
  id: string;
  features?: Record<string, unknown>;
  revenue?: number;
  attributes?: Record<string, unknown>;
  payload?: any;
  available?: boolean;
  valid_from?: string;
  valid_until?: string;
}

export interface ShelfItem {
  item: CatalogueItem;
  state: "available" | "excluded" | "unavailable" | "not-yet" | "over" | "unfit" | "gone";
  pinned: boolean;
  shown: number;
  taken: number;
  revenue: number;
  taken_share?: number;
  revenue_per_page?: number;
}

export interface Shelf {
  count: number;
  items: ShelfItem[];
  complete: boolean;
}

// Product is how a shopper knows an item.
export interface Product {
  id: string;
  title: string;
  image?: string;
  price?: number;
  margin?: number;
  stock?: number;
}

const textOf = (...values: unknown[]) => values.find((v): v is string => typeof v === "string" && v !== "");
// numberOf also reads a number from a text: an import from CSV writes all of a payload as texts.
const numberOf = (...values: unknown[]) => values.map((v) => (typeof v === "string" && /^\s*-?\d+(\.\d+)?\s*$/.test(v) ? Number(v) : v)).find((v): v is number => typeof v === "number" && Number.isFinite(v));

// productOf reads an item's title, picture, price, margin and stock from its payload, its attributes and its features.
export function productOf(of: CatalogueItem): Product {
  const { payload: p = {}, attributes: a = {}, features: f = {} } = of;
  const picture = textOf(p?.image, p?.picture, p?.image_url, p?.thumbnail, a["image"]);
  const all: Partial<Product> = {
    image: picture && (/^(https:|data:image\/)/.test(picture) || !/^[a-z][a-z0-9+.-]*:|^\/\//i.test(picture)) ? picture : undefined,
    price: numberOf(p?.price, p?.price?.amount, a["price"], f["price"]),
    margin: numberOf(p?.margin, a["margin"]),
    stock: numberOf(p?.stock, a["stock"], a["quantity"]),
  } as Partial<Product>;
  return { id: of.id, title: textOf(p?.title, p?.name, a["title"], a["name"]) ?? of.id, ...Object.fromEntries(Object.entries(all).filter(([, v]) => v !== undefined)) };
}

const kept = new Map<string, { since: number; known: Map<string, Product> }>(); // by placement, and then by id
const fresh = 60_000; // milliseconds for which views share prices and titles, which change
const most = 200; // ids of a request

// useProducts returns a function that knows the products of a placement with the given ids; until then it knows their ids.
export function useProducts(name: string, ids: string[]): (id: string) => Product {
  const [, arrived] = useState(0);
  const [known] = useState(() => {
    let k = kept.get(name);
    if (!k || Date.now() - k.since > fresh) kept.set(name, (k = { since: Date.now(), known: new Map() }));
    return k.known;
  });
  const missing = [...new Set(ids)].filter((id) => !known.has(id));
  const key = missing.join("\n");
  useEffect(() => {
    if (missing.length === 0) return;
    const stop = new AbortController();
    void (async () => {
      for (let i = 0; i < missing.length; i += most) {
        const query = new URLSearchParams(missing.slice(i, i + most).map((id) => ["id", id]));
        try {
          for (const s of (await get<Shelf>(`${placement(name, "shelf")}?${query}`, stop.signal)).items) known.set(s.item.id, productOf(s.item));
        } catch {
          return; // ids do, too
        }
      }
      if (known.size > 20_000) known.clear();
      arrived((n) => n + 1);
    })();
    return () => stop.abort();
  }, [name, key]);
  return (id) => known.get(id) ?? { id, title: id };
}

// useCurrency returns the currency of a placement's revenues, undefined without one.
export const useCurrency = (name: string) => usePoll((signal) => get<{ currency?: string }>(placement(name), signal), name, 60_000).value?.currency;

// Item shows a product: its picture, its title and its price.
export function Item(props: { of: Product; currency?: string | undefined; children?: ComponentChildren }) {
  const { of: p } = props;
  const [broken, setBroken] = useState<string>(); // the row may get another product
  const more = [p.price === undefined ? "" : price(p.price, props.currency), p.margin === undefined ? "" : `margin ${price(p.margin, props.currency)}`].filter(Boolean).join(" · ");
  return (
    <span class="product">
      {p.image && p.image !== broken
        ? <img src={p.image} alt="" width="40" height="40" loading="lazy" referrerpolicy="no-referrer" onError={() => setBroken(p.image)} />
        : <span class="no-picture" aria-hidden="true">{[...p.title][0]?.toUpperCase()}</span>}
      <span class="names"><bdi>{p.title}</bdi>{more || props.children ? <small>{more}{more && props.children ? " · " : ""}{props.children}</small> : null}</span>
    </span>
  );
}
