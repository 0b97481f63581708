// The client and the provider of flags against a real service.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { OpenFeature, type EvaluationContext, type EvaluationDetails, type JsonObject, type JsonValue, type TrackingEventDetails } from "@openfeature/server-sdk";
import { Client, Problem, routes, type Choice } from "vitrine";
import { VitrineProvider } from "vitrine/openfeature";
import { serve } from "./service.js";

const service = await serve();
const client = new Client({ base: service.url });
after(async () => {
  await OpenFeature.close();
  await service.stop();
});

test("the routes are those of the document", async () => {
  const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as { paths: Record<string, Record<string, { operationId: string }>> };
  const wanted: Record<string, string[]> = {};
  for (const [path, methods] of Object.entries(document.paths)) for (const [method, { operationId }] of Object.entries(methods)) {
    wanted[operationId] = [method.toUpperCase(), path];
  }
  assert.deepEqual(Object.fromEntries(Object.entries(routes).map(([name, [method, path]]) => [name, [method, path]])), wanted);
});

const features = [{ name: "price", kind: "number" }] as const;

test("a day", async () => {
  const path = { name: "day" };
  await client.call("putPlacement", { path, body: { max_size: 2, features, min_size: 2 } });
  await client.items("day", [1, 2, 3].map((i) => ({ id: `sku${i}`, features: { price: i } })));
  const page = await client.decide("day", { decision_id: "one", candidates: ["sku1", "sku2"] });
  assert.equal(page.assortment.length, 2);
  assert.deepEqual(await client.decide("day", { decision_id: "one", candidates: ["sku1", "sku2"] }), page);
  client.beacon("day", "one", "sku1");
  for (let status = ""; status !== "chosen"; ) ({ status } = await client.call("getDecision", { path: { ...path, id: "one" } }));
  await assert.rejects(client.outcome("day", "one", "sku2"), (problem) => problem instanceof Problem && problem.kind === "conflict");
  assert.equal((await client.call("listItems", { path, query: { limit: 2 } })).items.length, 2);
  assert.deepEqual((await client.call("shelf", { path, query: { id: ["sku3", "sku1"] } })).items.map(({ item }) => item.id), ["sku3", "sku1"]);
  let tag: string | null = null;
  const config = await client.call("getPlacement", { path, answered: (answer) => { tag = answer.headers.get("ETag"); } });
  await client.call("putPlacement", { path, body: { ...config, attribution_window: "1h" }, header: { "If-Match": tag! } });
  await assert.rejects(client.call("putPlacement", { path, body: config, header: { "If-Match": tag! } }), /412/);
  const lines = await (await client.call("export", { path })).text();
  assert.equal(lines.trim().split("\n").length, 1);
  const events = await client.call("events", { query: { placement: "day" }, header: { "Last-Event-ID": "0" } });
  const { value } = await events.body!.getReader().read();
  assert.match(new TextDecoder().decode(value), /after entry 0/);
  await events.body?.cancel().catch(() => {});
  assert.equal(await client.call("deletePlacement", { path }), null);
});

test("a wrong null takes the sale as a correction", async () => {
  const path = { name: "null", id: "visit" };
  await client.call("putPlacement", { path, body: { max_size: 1, features } });
  await client.items("null", [{ id: "sku2", features: { price: 2 } }]);
  await client.decide("null", { decision_id: "visit" });
  await client.outcome("null", "visit", null);
  await assert.rejects(client.outcome("null", "visit", "sku2"), { kind: "conflict" });
  for (const _ of [1, 2]) await client.call("correct", { path, body: { id: "sale", item: "sku2", value: 9.5 } });
  assert.equal((await client.call("getDecision", { path })).earned, 9.5);
});

// The script of docs/typescript.html, on as much of a browser as it uses.
test("the complete page sells to a shopper who left it and came back, and says so if a sale fails", async () => {
  const html = await readFile(new URL("../../../docs/typescript.html", import.meta.url), "utf8");
  const script = /<script type="module">(.*)<\/script>/s.exec(html)![1]!.replace(/import .*/, "");
  interface Element { textContent: string; disabled?: boolean; onclick?: () => Promise<void>; append(...parts: unknown[]): void }
  const run = Object.getPrototypeOf(async () => {}).constructor("Client", "location", "document", "addEventListener", script) as (...globals: unknown[]) => Promise<void>;
  const beacons: Promise<void>[] = [];
  class Browser extends Client {
    override beacon(...args: Parameters<Client["beacon"]>) { beacons.push(this.outcome(...args)); }
  }
  const visit = async (Caller: typeof Client) => {
    const buttons: Element[] = [], hides: ((event: { persisted: boolean }) => void)[] = [], found: Record<string, Element> = {};
    const element = (): Element => ({ textContent: "", append: (button) => buttons.push(button as Element) });
    const document = { createElement: element, querySelector: (id: string) => (found[id] ??= element()) };
    await run(Caller, { search: `?service=${service.url}` }, document, (kind: string, hide: (typeof hides)[0]) => { if (kind === "pagehide") hides.push(hide); });
    for (const persisted of [true, false]) for (const hide of hides) hide({ persisted });
    await Promise.all(beacons);
    return { click: () => buttons[0]!.onclick!(), found };
  };
  const back = await visit(Browser);
  await back.click();
  assert.match(back.found["#said"]!.textContent, /^Sold: /);
  assert.equal(back.found["#page"]!.disabled, true);
  class Fails extends Browser {
    override outcome() { return Promise.reject(new Error("no network")); }
  }
  const failed = await visit(Fails);
  await failed.click();
  assert.match(failed.found["#said"]!.textContent, /^Try again: .*no network$/);
  assert.equal(failed.found["#page"]!.disabled, false);
});

// OpenFeature's own suite, evaluation.feature of its specification. A flag is a placement, and a variant an item.
const flags: Record<string, Record<string, unknown>> = {
  "boolean-flag": { on: true },
  "string-flag": { greeting: "hi" },
  "integer-flag": { ten: 10 },
  "float-flag": { half: 0.5 },
  "object-flag": { template: { showImages: true, title: "Check out these pics!", imagesPerPage: 100 } },
  "context-aware": { internal: "INTERNAL", external: "EXTERNAL" },
  "wrong-flag": { one: "uno" },
};
const sdk = OpenFeature.getClient();
before(async () => {
  for (const [name, variants] of Object.entries(flags)) {
    await client.call("putPlacement", { path: { name }, body: { max_size: 1, features: [{ name: "none", kind: "number", default: 0 }], policy: { name: "uniform" }, min_size: 1 } });
    await client.items(name, Object.entries(variants).map(([id, payload]) => ({ id, payload })));
  }
  const request = (context: EvaluationContext, flag: string) => (flag === "context-aware" ? { candidates: [context["fn"] === "Sulisław" ? "internal" : "external"] } : {});
  await OpenFeature.setProviderAndWait(new VitrineProvider(client, request));
});

const evaluate: Record<string, (flag: string, value: string, context?: EvaluationContext) => Promise<EvaluationDetails<JsonValue>>> = {
  boolean: (flag, value) => sdk.getBooleanDetails(flag, value === "true"),
  string: (flag, value, context) => sdk.getStringDetails(flag, value, context),
  integer: (flag, value) => sdk.getNumberDetails(flag, Number(value)),
  float: (flag, value) => sdk.getNumberDetails(flag, Number(value)),
  object: (flag) => sdk.getObjectDetails<JsonValue>(flag, {}),
};

interface World { details: EvaluationDetails<JsonValue>; flag: string; context: EvaluationContext; fallback: string }
const steps: [RegExp, (world: World, ...found: string[]) => Promise<void> | void][] = [
  [/^an? (\w+) flag with key "(.*)" is evaluated with (?:details and )?(?:a null )?default value ?"?([^"]*)"?$/, async (w, kind, flag, value) => { w.details = await evaluate[kind!]!(flag!, value!); }],
  [/^the resolved (boolean|string|integer|float) (?:details )?value should be "?([^",]+)"?(?:, the variant should be "(.*)", and the reason should be "(.*)")?$/, (w, _, value, variant, reason) => {
    assert.equal(String(w.details.value), value);
    if (variant) assert.deepEqual([w.details.variant, w.details.reason], [variant, reason]);
  }],
  [/^the resolved object (?:details )?value should be contain fields "(.*)", "(.*)", and "(.*)", with values "(.*)", "(.*)" and (\d+), respectively$/, (w, a, b, c, ...values) => {
    const object = w.details.value as JsonObject;
    assert.deepEqual([a, b, c].map((field) => String(object[field!])), values);
  }],
  [/^the variant should be "(.*)", and the reason should be "(.*)"$/, (w, ...wanted) => assert.deepEqual([w.details.variant, w.details.reason], wanted)],
  [/^context contains keys "fn", "ln", "age", "customer" with values "(.*)", "(.*)", (\d+), "(.*)"$/, (w, fn, ln, age, customer) => { w.context = { fn: fn!, ln: ln!, age: Number(age), customer: customer === "true" }; }],
  [/^a flag with key "(.*)" is evaluated with default value "(.*)"$/, async (w, flag, value) => { [w.flag, w.fallback] = [flag!, value!]; w.details = await evaluate["string"]!(flag!, value!, w.context); }],
  [/^the resolved string response should be "(.*)"$/, (w, value) => assert.equal(w.details.value, value)],
  [/^the resolved flag value is "(.*)" when the context is empty$/, async (w, value) => assert.equal((await evaluate["string"]!(w.flag, w.fallback)).value, value)],
  [/^a non-existent string flag with key "(.*)" is evaluated with details and a fallback value "(.*)"$/, async (w, flag, value) => { w.fallback = value!; w.details = await evaluate["string"]!(flag!, value!); }],
  [/^a string flag with key "(.*)" is evaluated as an integer, with details and a fallback value (\d+)$/, async (w, flag, value) => { w.fallback = value!; w.details = await evaluate["integer"]!(flag!, value!); }],
  [/^the default (?:string|integer) value should be returned$/, (w) => assert.equal(String(w.details.value), w.fallback)],
  [/^the reason should indicate an error and the error code should indicate a (?:missing flag|type mismatch) with "(.*)"$/, (w, code) => assert.deepEqual([w.details.reason, w.details.errorCode], ["ERROR", code])],
];

const [, ...scenarios] = (await readFile(new URL("../evaluation.feature", import.meta.url), "utf8")).split("Scenario: ");
for (const scenario of scenarios) {
  const [name, ...lines] = scenario.split("\n").map((line) => line.trim()).filter((line) => line && !line.startsWith("#"));
  test(`OpenFeature: ${name}`, async () => {
    const world = {} as World;
    for (const line of lines) {
      const text = line.replace(/^(When|Then|And) /, "");
      const step = steps.find(([pattern]) => pattern.test(text));
      assert.ok(step, `no step for ${text}`);
      await step[1](world, ...step[0].exec(text)!.slice(1));
    }
  });
}

test("a flag returns a page, and tracking reports its outcome", async () => {
  const page = await sdk.getObjectDetails<JsonValue>("string-flag", []);
  assert.deepEqual((page.value as JsonObject[]).map((item) => [item["id"], item["payload"]]), [["greeting", "hi"]]);
  const decision = String(page.flagMetadata["decision_id"]);
  sdk.track("outcome", {}, { placement: "string-flag", decision, choice: "greeting" });
  for (let status = ""; status !== "chosen"; ) ({ status } = await client.call("getDecision", { path: { name: "string-flag", id: decision } }));
});

test("tracking reports a list of what was taken, and the event's value", async () => {
  const list = [{ item: "greeting", quantity: 2, value: 5.1 }];
  for (const [taken, quantity, value] of [[{ choice: list }, 2, 5.1], [{ choices: list }, 2, 5.1], [{ choice: "greeting", value: 7 }, 1, 7]] as const) {
    const page = await sdk.getObjectDetails<JsonValue>("string-flag", []);
    const decision = String(page.flagMetadata["decision_id"]);
    sdk.track("outcome", {}, { placement: "string-flag", decision, ...taken } as TrackingEventDetails);
    let choices: readonly Choice[] | undefined;
    while (!choices) ({ choices } = await client.call("getDecision", { path: { name: "string-flag", id: decision } }));
    assert.deepEqual(choices, [{ item: "greeting", quantity, value }]);
  }
});

test("tracking logs outcomes that it cannot report, and records nothing in their place", async () => {
  const logged: string[] = [];
  const provider = new VitrineProvider(client, undefined, { warn: (...args) => logged.push(args.join(" ")) });
  await client.decide("string-flag", { decision_id: "careless" });
  const track = async (details: TrackingEventDetails) => {
    logged.length = 0;
    provider.track("outcome", {}, { placement: "string-flag", decision: "careless", ...details });
    while (!logged.length) await new Promise((done) => setImmediate(done));
    const [text] = logged;
    assert.match(text!, /^vitrine: the outcome of the decision careless of string-flag is not reported: /);
    return text!;
  };
  for (const [details, wrong] of [[{}, /choice: must be/], [{ choice: 5 }, /choice: must be/], [{ choice: "greeting", choices: [] }, /choice: must be/],
    [{ choice: null, value: 5 }, /value 5: is for a choice of one item/], [{ choices: [], value: 0 }, /value 0: is for/], [{ choice: "greeting", value: NaN }, /NaN/], [{ choice: "other" }, /422/]] as const) {
    assert.match(await track(details as TrackingEventDetails), wrong);
  }
  const { status } = await client.call("getDecision", { path: { name: "string-flag", id: "careless" } });
  assert.equal(status, "open");
  provider.track("outcome", {}, { placement: "string-flag", decision: "careless", choice: null, value: 0 });
  for (let status = ""; status !== "chosen"; ) ({ status } = await client.call("getDecision", { path: { name: "string-flag", id: "careless" } }));
  assert.match(await track({ choice: "greeting" }), /409/);
});

test("a context's key is the shopper's, and a flag without a service is the SDK's matter", async () => {
  const flag = await new VitrineProvider(client).resolveStringEvaluation("string-flag", "", { targetingKey: "u1", age: 44 });
  assert.deepEqual([flag.value, flag.reason], ["hi", "TARGETING_MATCH"]);
  const away = new VitrineProvider(new Client({ base: "http://127.0.0.1:1", patience: -1 }));
  await assert.rejects(away.resolveStringEvaluation("string-flag", "", {}), TypeError);
});
