// here is the address of the service.
export const here = () => document.baseURI.split("#")[0]!.replace(/\/[^/]*$/, "");

// The requests of the first run, in four languages. at is the address of the service, and name the placement.
export const languages = ["curl", "Go", "Python", "TypeScript"] as const;
export type Language = (typeof languages)[number];
export type Step = "create" | "ask" | "report";

const items = [
  { id: "sku1", price: 12, revenue: 2.5 },
  { id: "sku2", price: 7, revenue: 1.5 },
  { id: "sku3", price: 9, revenue: 2 },
];

// sample returns the request of a step. withKey says whether the service asks for a key.
export function sample(language: Language, step: Step, at: string, name: string, withKey: boolean): string {
  return { curl, Go: go, Python: python, TypeScript: typescript }[language](step, at, name, withKey);
}

const by = (at: string, name: string, withKey: boolean) => (method: string, path: string, body: unknown) =>
  [`curl -X ${method} ${at}/v1/placements/${name}${path}`, ...(withKey ? [`-H "Authorization: Bearer $VITRINE_KEY"`] : []), `-H "Content-Type: application/json" -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`].join(" \\\n  ");

// push returns the request that puts an item with the given features into a placement's catalogue.
export function push(features: { name: string; kind: string; values?: string[] }[], name: string, withKey: boolean): string {
  const value = (f: (typeof features)[number]) => (f.kind === "number" ? 12 : f.kind === "object" ? {} : f.values?.[0] ?? f.name);
  const item = { id: "sku1", features: Object.fromEntries(features.map((f) => [f.name, value(f)])), revenue: 2.5, payload: { title: "Boots", price: 12 } };
  return by(here(), name, withKey)("PUT", "/items", { items: [item] });
}

function curl(step: Step, at: string, name: string, withKey: boolean): string {
  const send = by(at, name, withKey);
  if (step === "create") return send("PUT", "", { max_size: 3, min_size: 3, mode: "explore", explore_share: 0.02, features: [{ name: "price", kind: "number" }] });
  if (step === "report") return send("POST", "/decisions/visit-1/outcome", { choice: "sku1" });
  return send("POST", "/decisions", { decision_id: "visit-1", items: items.map((i) => ({ id: i.id, features: { price: i.price }, revenue: i.revenue })) });
}

function go(step: Step, at: string, name: string, withKey: boolean): string {
  if (step === "create") {
    return `c := &client.Client{Base: "${at}"${withKey ? `, Key: os.Getenv("VITRINE_KEY")` : ""}}
_, err := c.Put(ctx, "${name}", &api.Placement{
	MaxSize: 3,
	MinSize: 3,
	Mode:    api.Explore, ExploreShare: new(0.02),
	Features: []api.Feature{{Name: "price", Kind: "number"}},
})`;
  }
  if (step === "report") return `err = c.Outcome(ctx, "${name}", page.Decision, "sku1") // "" if the shopper took nothing`;
  return `page, err := c.Decide(ctx, "${name}", &api.Request{Items: []api.Item{
${items.map((i) => `	{ID: "${i.id}", Features: api.Values{api.Number("price", ${i.price})}, Revenue: new(${i.revenue.toFixed(1)})},`).join("\n")}
}})
// show page.Items(), in this order`;
}

function python(step: Step, at: string, name: string, withKey: boolean): string {
  if (step === "create") {
    return `import ${withKey ? "os, " : ""}vitrine

client = vitrine.Client("${at}"${withKey ? `, key=os.environ["VITRINE_KEY"]` : ""})
client.put_placement("${name}", max_size=3, min_size=3, mode="explore", explore_share=0.02,
                     features=[{"name": "price", "kind": "number"}])`;
  }
  if (step === "report") return `client.outcome("${name}", page["decision_id"], choice="sku1")  # None if the shopper took nothing`;
  return `page = client.decide("${name}", items=[
${items.map((i) => `    {"id": "${i.id}", "features": {"price": ${i.price}}, "revenue": ${i.revenue}},`).join("\n")}
])
# show page["assortment"], in this order`;
}

function typescript(step: Step, at: string, name: string, withKey: boolean): string {
  if (step === "create") {
    return `import { Client } from "vitrine";

const client = new Client({ base: "${at}"${withKey ? ", key: process.env.VITRINE_KEY" : ""} });
await client.call("putPlacement", {
  path: { name: "${name}" },
  body: { max_size: 3, min_size: 3, mode: "explore", explore_share: 0.02, features: [{ name: "price", kind: "number" }] },
});`;
  }
  if (step === "report") return `await client.outcome("${name}", page.decision_id, "sku1"); // null if the shopper took nothing`;
  return `const page = await client.decide("${name}", { items: [
${items.map((i) => `  { id: "${i.id}", features: { price: ${i.price} }, revenue: ${i.revenue} },`).join("\n")}
] });
// show page.assortment, in this order`;
}
