// The client on hosts that fail, by the table of TestAddresses in service/client/addresses_test.go, and against a real service.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Client, type Options } from "vitrine";

/** A client whose clock moves only when somebody waits. */
class Fake extends Client {
  time = 0;
  protected override now() { return this.time; }
  protected override jitter() { return 0; }
  protected override sleep(milliseconds: number) { this.time += milliseconds; return Promise.resolve(); }
}

type Does = (client: Fake) => Response;
const good: Does = () => Response.json({ decision_id: "d", assortment: [] }, { status: 201 });
const refuses: Does = () => { throw new TypeError("fetch failed"); };
const kind = (type: string, status = 201, body: BodyInit | null = '{"decision_id": "d", "assortment": []}'): Does => () =>
  new Response(body, { status, headers: { "Content-Type": type } });
const problem = (body: string) => kind("application/problem+json", 503, body);
const hangs: Does = (client) => { client.time += 3000; throw new DOMException("no answer in time", "TimeoutError"); };
const answers = (status: number, after = ""): Does => () =>
  Response.json({ type: "urn:vitrine:problem:full", detail: "full" }, { status, headers: { "Content-Type": "application/problem+json", "Retry-After": after } });

function hosts(does: Does[], options: Options = {}) {
  const asked = { hosts: "", came: [] as number[], bodies: new Set<unknown>() };
  const client: Fake = new Fake({
    base: "http://a, http://b/,http://c", timeout: 3000, patience: 5000, ...options,
    fetch: async (url, init) => {
      init?.signal?.throwIfAborted();
      const { host } = new URL(String(url));
      asked.hosts += host;
      asked.came.push(client.time / 1000);
      asked.bodies.add(init?.body);
      return does["abc".indexOf(host)]!(client);
    },
  });
  return { client, asked };
}

const rules: [string, Does[], string, number[], string, string][] = [
  ["the first answers", [good, good, good], "a", [0], "", "a"],
  ["refusal", [refuses, good, good], "ab", [0, 0], "", "b"],
  ["two refusals", [refuses, refuses, good], "abc", [0, 0, 0], "", "c"],
  ["503 that asks for a wait", [answers(503, "9"), good, good], "ab", [0, 0], "", "b"],
  ["502 and 504", [answers(502), answers(504), good], "abc", [0, 0, 0], "", "c"],
  ["one that hangs", [hangs, good, good], "ab", [0, 3], "", "b"],
  ["a refusal by the service", [answers(409), good, good], "a", [0], "409 full", "a"],
  ["a limit of the rate", [answers(429, "3"), good, good], "aa", [0, 3], "429 full", "aa"],
  ["the shortest wait that is asked for", [answers(503, "4"), answers(503, "3"), answers(503, "9")], "abcabc", [0, 0, 0, 3, 3, 3], "503 full", "abcabc"],
  ["patience ends within a round", [hangs, hangs, hangs], "ab", [0, 3], "no answer", "ca"],
  ["problems that cannot be read", [problem("[null]"), problem('{"a'), good], "abc", [0, 0, 0], "", "c"],
  ["other problems that cannot be read", [problem("null"), problem('{"type": 5}'), good], "abc", [0, 0, 0], "", "c"],
  ["another case of the type", [kind("Application/JSON; charset=utf-8"), good, good], "a", [0], "", "a"],
  ["another type", [kind("application/jsonp"), good, good], "a", [0], "not an answer of the service", "a"],
];
for (const [name, does, wanted, came, wrong, then] of rules) {
  test(`addresses: ${name}`, async () => {
    const { client, asked } = hosts(does);
    const said = await client.decide("home", {}).then(() => "", (error: Error) => error.message);
    assert.ok(wrong ? said.includes(wrong) : said === "", said);
    assert.deepEqual([asked.hosts, asked.came, asked.bodies.size], [wanted, came, 1]);
    asked.hosts = "";
    await client.decide("home", {}).catch(() => {});
    assert.ok(asked.hosts.startsWith(then), asked.hosts);
  });
}

test("a fallback comes in time, but not for the caller's own mistakes", async () => {
  const { client, asked } = hosts([hangs, refuses, answers(503)], { patience: 60_000 });
  const page = await client.decide("home", {}, { fallback: ["x", "y"], within: 500 });
  assert.deepEqual(page.assortment.map((item) => item.id), ["x", "y"]);
  assert.equal(asked.hosts, "a");
  await client.outcome("home", page.decision_id, "x");
  await client.call("activate", { path: { name: "home", id: page.decision_id } });
  client.beacon("home", page.decision_id, "x");
  assert.equal(asked.hosts, "a");
  assert.equal((await hosts([answers(500)]).client.decide("home", {}, { fallback: ["x"] })).decision_id, "");
  for (const garbled of [kind("", 200, ""), kind("", 204, null), ...["", "null", "[]", "{}", "{"].map((body) => kind("application/json", 200, body))]) {
    assert.equal((await hosts([garbled]).client.decide("home", {}, { fallback: ["x"] })).decision_id, "");
    await assert.rejects(hosts([garbled]).client.decide("home", {}), SyntaxError);
  }
  await assert.rejects(hosts([answers(422)]).client.decide("home", {}, { fallback: ["x"] }), /422 full/);
  const once = hosts([refuses, refuses, refuses], { patience: -1 });
  await assert.rejects(once.client.decide("home", {}), /fetch failed/);
  assert.equal(once.asked.hosts, "abc");
});

test("the caller's mistakes are neither tried again nor hidden by a fallback", async () => {
  for (const [mistake, options, features] of [[/BigInt/, {}, { price: 1n }], [/price: NaN is no number/, {}, { price: NaN }], [/Authorization|header/i, { key: "to\nken" }, {}], [/base: must be/, { base: undefined }, {}]] as const) {
    const { client, asked } = hosts([good], options as Options);
    await assert.rejects(client.decide("home", { items: [{ id: "a", features }] }, { fallback: ["x"] }), mistake);
    assert.equal(asked.hosts, "");
  }
  await assert.rejects(hosts([answers(404)]).client.call("activate", { path: { name: "home" } as { name: string; id: string } }), /404/);
  const { client, asked } = hosts([good]);
  await assert.rejects(client.call("deleteItem", { path: { name: "home", item: ".." } }), /is no name in a URL/);
  assert.equal(asked.hosts, "");
});

test("a fallback is a list", async () => {
  const { client, asked } = hosts([good]);
  await assert.rejects(client.decide("home", {}, { fallback: "ab" as unknown as string[] }), /fallback "ab": must be a list of item ids/);
  assert.equal(asked.hosts, "");
});

test("the longest timeouts are no short ones", async () => {
  for (const timeout of [Infinity, 2 ** 31]) {
    const fetch: typeof globalThis.fetch = (_, init) => new Promise((done, failed) => {
      init!.signal!.addEventListener("abort", () => failed(init!.signal!.reason as Error));
      setTimeout(() => done(Response.json({ assortment: [] })), 50);
    });
    await new Client({ base: "http://a", timeout, patience: -1, fetch }).decide("home", {});
  }
});

test("a signal ends a call, also one that waits, and no fallback hides it", async () => {
  const stop = new AbortController();
  const { client, asked } = hosts([() => { stop.abort(new Error("closed")); throw new TypeError("fetch failed"); }, good, good]);
  await assert.rejects(client.decide("home", {}, { fallback: ["x"], signal: stop.signal }), /closed/);
  assert.equal(asked.hosts, "a");
  await assert.rejects(client.decide("home", {}, { signal: stop.signal }), /closed/);
  await assert.rejects(client.call("listPlacements", { signal: stop.signal }), /closed/);
  assert.equal(asked.hosts, "a");
  const later = new AbortController();
  const busy = new Client({ base: "http://a", fetch: () => {
    setTimeout(() => later.abort(new Error("closed")), 10);
    return Promise.resolve(new Response("", { status: 503, headers: { "Retry-After": "20" } }));
  } });
  await assert.rejects(busy.call("listPlacements", { signal: later.signal }), /closed/);
});

test("a page of something else is no answer", async () => {
  const html: Does = () => new Response("<p>", { headers: { "Content-Type": "text/html" } });
  const { client } = hosts([html]);
  await assert.rejects(client.decide("home", {}, { fallback: ["x"] }), /200 not an answer of the service/);
  await assert.rejects(client.outcome("home", "d", null), /not an answer of the service/);
  const report = await client.call("experimentReport", { path: { name: "home", experiment: "7" }, query: { entry: 7 } });
  assert.equal(await report.text(), "<p>");
  await assert.rejects(hosts([() => new Response("")]).client.decide("home", {}), /not an answer of the service/);
});

test("times are numbers of milliseconds, and no fallback hides one that is not", async () => {
  for (const wrong of [NaN, "500", null] as number[]) {
    for (const option of ["timeout", "patience"]) assert.throws(() => new Client({ [option]: wrong }), new RegExp(`TypeError: ${option} ${wrong}: must be a number of milliseconds`));
    await assert.rejects(hosts([good]).client.decide("home", {}, { fallback: ["x"], within: wrong }), new RegExp(`TypeError: within ${wrong}: must be`));
  }
  assert.throws(() => new Client({ timeout: -1 }), /timeout -1: must be a number of milliseconds, at least 0/);
  await assert.rejects(hosts([good]).client.decide("home", {}, { within: -1 }), /within -1: must be/);
});

test("waits leave no listener at a signal of many calls", async () => {
  const { signal } = new AbortController();
  let asked = 0;
  const busy = new Client({ base: "http://a", fetch: () => {
    assert.equal(getEventListeners(signal, "abort").length, 0);
    return Promise.resolve(asked++ < 3 ? new Response("", { status: 503 }) : Response.json({ placements: [] }));
  } });
  await busy.call("listPlacements", { signal });
  assert.equal(asked, 4);
});

test("a redirect names the base to set, and no fallback hides it", async () => {
  const asked: string[] = [];
  const server = createServer((request, answer) => {
    asked.push(`${request.method} ${request.url}`);
    answer.writeHead(status, { Location: `https://decisions.example${request.url}` }).end();
  });
  let status = 0;
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (status of [301, 302, 307, 308]) {
    await assert.rejects(new Client({ base }).decide("home", {}, { fallback: ["x"] }),
      { status, message: `${status} ${base} redirects to https://decisions.example/v1/placements/home/decisions: set base to the URL that answers without a redirect` });
  }
  assert.deepEqual(asked, Array(4).fill("POST /v1/placements/home/decisions"));
  server.close();
  await assert.rejects(hosts([() => new Response("", { status: 404, headers: { Location: "/x" } })]).client.decide("home", {}), /^Error: 404 not an answer/);
  const opaque = () => Object.defineProperties(new Response(""), { type: { value: "opaqueredirect" }, status: { value: 0 }, ok: { value: false } }); // as browsers answer
  await assert.rejects(hosts([opaque]).client.decide("home", {}, { fallback: ["x"] }), /^Error: 3xx http:\/\/a redirects to another URL, which browsers hide from scripts: set base/);
});

test("types accept undefined for options, and a signal for routes without parameters", async () => {
  const { client } = hosts([good], { key: undefined, timeout: undefined, patience: undefined });
  await client.decide("home", { decision_id: undefined, max_size: undefined }, { fallback: undefined, within: undefined });
  await client.call("getSession", { signal: undefined });
  await client.call("stats", { path: { name: "home" }, query: { entry: undefined } });
  await client.call("shelf", { path: { name: "home" }, query: { id: undefined } });
  // @ts-expect-error: an answer of 304 would not be a Placement
  await client.call("getPlacement", { path: { name: "home" }, header: { "If-None-Match": '"1"' } });
});

test("a decision without an id gets one, also if the id is undefined or empty", async () => {
  Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true }); // as in a page on plain HTTP
  for (const request of [{}, { decision_id: "" }, { decision_id: undefined }]) {
    const { client, asked } = hosts([refuses, good]);
    await client.decide("home", request);
    const ids = [...asked.bodies].map((text) => (JSON.parse(String(text)) as { decision_id?: string }).decision_id);
    assert.ok(ids.length === 1 && /^[0-9a-f]{32}$/.test(ids[0]!), String(ids));
  }
  Reflect.deleteProperty(crypto, "randomUUID");
});

test("an outcome is a choice, or a list of what was taken", async () => {
  const choices = [{ item: "x", quantity: 2, value: 5.1 }, { item: "y" }] as const;
  for (const [choice, body] of [["x", { choice: "x" }], [null, { choice: null }], [choices, { choices }], [[], { choices: [] }]] as const) {
    const { client, asked } = hosts([good]);
    await client.outcome("home", "d", choice);
    assert.deepEqual([...asked.bodies].map((text) => JSON.parse(String(text)) as unknown), [body]);
  }
});

test("a page's own origin gets beacons, other origins and keys need a request", () => {
  const sent: string[] = [];
  const browser = { location: { href: "http://a/cart", origin: "http://a" }, navigator: { sendBeacon: (url: string) => sent.push(url) > 0 } };
  for (const [name, value] of Object.entries(browser)) Object.defineProperty(globalThis, name, { value, configurable: true });
  new Client().beacon("home", "d/1", null);
  for (const options of [{ base: "http://a" }, { base: "http://b" }, { base: "http://a", key: "token" }]) {
    const { client, asked } = hosts([good, good, good], options);
    client.beacon("home", "d/1", null);
    sent.push(`asked ${asked.hosts}`);
  }
  for (const name of Object.keys(browser)) Reflect.deleteProperty(globalThis, name);
  const path = "/v1/placements/home/decisions/d%2F1/outcome";
  assert.deepEqual(sent, [path, `http://a${path}`, "asked ", "asked b", "asked a"]);
});

test("wrong addresses are refused", () => {
  for (const base of ["http://x,", ",", "http://x,y:8080", "ftp://x", "", "http://x?key=y"]) assert.throws(() => new Client({ base }), /must be a URL such as/);
  for (const base of ["http://u:p@x", "http://x, https://u@y/z"]) assert.throws(() => new Client({ base }), /must be without the user and password/);
  new Client({ base: "http://x/@y" });
});

