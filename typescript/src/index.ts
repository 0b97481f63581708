import { routes, type Answer, type CatalogueItem, type Choice, type DecideRequest, type ItemsChanged, type Outcome, type Problem as Document, type Routes } from "./api.js";

export type * from "./api.js";
export { routes };

/** A refusal: its HTTP status (0 for a redirect in a browser), its kind such as "conflict", and the service's answer, if the service has answered. */
export class Problem extends Error {
  readonly kind: string;
  constructor(readonly status: number, readonly document: Partial<Document>) {
    super(`${status || "3xx"} ${document.detail ?? "not an answer of the service"}`);
    this.kind = String(document.type ?? "").split(":").pop()!;
  }
  /** Whether the service cannot take requests now. */
  get away(): boolean {
    return [429, 502, 503, 504].includes(this.status);
  }
}

export interface Options {
  /** The URL of the service, or several with commas between them. In a page, its own origin if left out. */
  readonly base?: string | undefined;
  /** The token of an API key. */
  readonly key?: string | undefined;
  /** Milliseconds that an attempt may take: 10 s. */
  readonly timeout?: number | undefined;
  /** Milliseconds from the first attempt to the beginning of the last: 30 s; negative tries each address once. */
  readonly patience?: number | undefined;
  readonly fetch?: typeof fetch | undefined;
}

interface Ends {
  /** Ends the call, which then throws the signal's reason, even with a fallback. */
  signal?: AbortSignal | undefined;
}
interface How extends Ends {
  /** Receives the answer's status and headers, such as the ETag; call reads the body itself unless it returns the Response. */
  answered?: ((answer: Response) => void) | undefined;
}
type Takes<K extends keyof Routes> = {} extends Routes[K]["takes"] ? [takes?: Routes[K]["takes"] & How] : [takes: Routes[K]["takes"] & How];
type Values = Record<string, string | number | boolean | readonly string[] | undefined>;
interface Parts extends How { path?: Record<string, string>; query?: Values | undefined; header?: Values | undefined; body?: unknown }
interface Prepared { route: keyof Routes; path: string; method: string; headers: Headers; body: string | null; signal: AbortSignal | undefined }
interface Received { answer: Response; text: string | null }

const longest = 2 ** 31 - 1; // milliseconds: a longer timer ends at once

/**
 * Calls a decision service. Every call may be tried again, and is: after failures of the network, timeouts and the statuses 429,
 * 502, 503 and 504. The wait is the service's Retry-After plus a delay drawn from [0, w], where w doubles from 50 ms to 5 s.
 * These failures except 429 first send the call to the next address at once.
 */
export class Client {
  readonly #bases: string[];
  readonly #options: Options;
  #first = 0; // the address to begin with: the one that has not failed

  constructor(options: Options = {}) {
    this.#options = options;
    checkTime("timeout", options.timeout);
    checkTime("patience", options.patience, -Infinity);
    this.#bases = (options.base ?? "").split(",").map((base) => base.trim().replace(/\/$/, ""));
    if (options.base !== undefined && !this.#bases.every((base) => /^https?:\/\/[^/?#][^?#]*$/.test(base))) {
      throw new TypeError(`base ${JSON.stringify(options.base)}: must be a URL such as "http://127.0.0.1:8080", or several with commas between them`);
    }
    if (this.#bases.some((base) => /^https?:\/\/[^/]*@/.test(base))) throw new TypeError("base: must be without the user and password before the @, which fetch refuses");
  }

  /** Decides which items to show. If the service is away or fails, or takes longer than within (1 s), the page is the fallback: item ids,
   *  which get an empty decision_id. Reports about such a page do nothing. Without a fallback, within limits the patience. */
  async decide(placement: string, request: DecideRequest, how: { fallback?: readonly string[] | undefined; within?: number | undefined } & Ends = {}): Promise<Answer> {
    if (typeof how.fallback === "string") throw new TypeError(`fallback ${JSON.stringify(how.fallback)}: must be a list of item ids`);
    checkTime("within", how.within);
    const body = { ...request, decision_id: request.decision_id || drawn() }; // so that retries are one decision
    const within = how.within ?? (how.fallback && 1000);
    const prepared = this.#prepare("decide", { path: { name: placement }, body, signal: how.signal });
    try {
      const page = (await this.#receive(prepared, within)) as Answer | null;
      if (!page?.assortment) throw new SyntaxError("no page: not an answer of the service");
      return page;
    } catch (failure) {
      if (!how.fallback || how.signal?.aborted || (failure instanceof Problem && failure.status < 500 && !failure.away)) throw failure;
      const assortment = how.fallback.map((id, i) => ({ id, position: i + 1, choice_probability: null }));
      return { decision_id: "", assortment, outside_probability: null, expected_revenue: null, propensity: null, policy_entry: 0 };
    }
  }

  /** Reports the id of the item that was taken, null for none, or a list of the items that were taken. */
  async outcome(placement: string, decision: string, choice: string | null | readonly Choice[]): Promise<void> {
    await this.call("outcome", { path: { name: placement, id: decision }, body: outcomeOf(choice) });
  }

  /** Reports an outcome while the page unloads, such as a sale by a click that leaves it, and does not wait for the answer. */
  beacon(placement: string, decision: string, choice: string | null | readonly Choice[]): void {
    if (!decision) return;
    const { path, method, headers, body } = this.#prepare("outcome", { path: { name: placement, id: decision }, body: outcomeOf(choice) });
    const url = this.#bases[this.#first] + path;
    const ours = new URL(url, globalThis.location?.href).origin === globalThis.location?.origin; // a beacon has no key, and asks no other origin
    if (ours && !this.#options.key && navigator.sendBeacon(url, new Blob([body!], { type: "application/json" }))) return;
    void (this.#options.fetch ?? fetch)(url, { method, headers, body, keepalive: true }).catch(() => {});
  }

  /** Puts items into the catalogue of a placement. */
  items(placement: string, items: readonly CatalogueItem[]): Promise<ItemsChanged> {
    return this.call("putItems", { path: { name: placement }, body: { items } });
  }

  /** Calls any route. An answer that is not JSON is returned as the Response. */
  async call<K extends keyof Routes>(route: K, ...[takes]: Takes<K>): Promise<Routes[K]["answer"]> {
    const parts = (takes ?? {}) as Parts;
    const prepared = this.#prepare(route, parts);
    const isOfFallback = parts.path?.id === "" && prepared.method === "POST" && prepared.path.includes("/decisions//"); // the service does not know such a page
    return (isOfFallback ? null : await this.#receive(prepared, undefined, parts.answered)) as Routes[K]["answer"];
  }

  /** What attempts have in common. It throws for the caller's mistakes, which no attempt and no fallback would mend. */
  #prepare(route: keyof Routes, { path = {}, query = {}, header = {}, body, signal }: Parts): Prepared {
    if (this.#options.base === undefined && !globalThis.location) throw new TypeError('base: must be the URL of the service, such as "http://127.0.0.1:8080", outside a page');
    const parameters = new URLSearchParams(given(query)).toString();
    const [method, pattern] = routes[route];
    const headers = new Headers(given(header));
    if (this.#options.key) headers.set("Authorization", `Bearer ${this.#options.key}`);
    if (body !== undefined) headers.set("Content-Type", "application/json");
    return {
      route, method, headers, signal,
      path: pattern.replace(/\{(\w+)\}/g, (_, name: string) => part(path[name] ?? "")) + (parameters && `?${parameters}`),
      body: body === undefined ? null : JSON.stringify(body, finite),
    };
  }

  async #receive(request: Prepared, within?: number, answered?: How["answered"]): Promise<unknown> {
    const { answer, text } = await this.#send(request, within);
    answered?.(answer);
    if (text === null) return answer;
    if (isOf(answer, "application/json")) return JSON.parse(text);
    if (answer.ok && answer.status !== 204) throw text ? new Problem(answer.status, {}) : new SyntaxError("empty: not an answer of the service");
    return null;
  }

  /** Tries until an attempt succeeds, fails for good, or would begin after the patience. */
  async #send(request: Prepared, within?: number): Promise<Received> {
    const { patience = within ?? 30_000, timeout = 10_000 } = within === undefined ? this.#options : { timeout: this.#options.timeout ?? 10_000 };
    const began = this.now();
    for (let ceiling = 50, asked = 0; ; ceiling = Math.min(2 * ceiling, 5000)) {
      let wait = Infinity;
      let failure: unknown;
      for (let i = 0, at = this.#first; i < this.#bases.length; i++, at = (at + 1) % this.#bases.length) {
        asked++;
        const left = Math.max(patience - (this.now() - began), 50);
        let received: Received | undefined;
        let after = 0;
        try {
          received = await this.#attempt(request, at, within === undefined ? timeout : Math.min(timeout, left));
        } catch (error) {
          request.signal?.throwIfAborted();
          failure = error;
        }
        if (received) {
          if (received.answer.ok) return received;
          const refusal = (failure = new Problem(received.answer.status, documentOf(received, this.#bases[at]!)));
          if (request.method === "DELETE" && asked > 1 && refusal.kind === "not-found") return received; // deleted by an earlier attempt
          if (!refusal.away) throw refusal;
          after = retryAfter(received.answer);
          if (refusal.status === 429) {
            wait = after;
            break;
          }
        }
        if (this.#first === at) this.#first = (at + 1) % this.#bases.length;
        wait = Math.min(wait, after);
        if (patience >= 0 && this.now() - began > patience) break;
      }
      wait += this.jitter() * ceiling;
      if (patience < 0 || this.now() - began + wait > patience) throw failure;
      await this.sleep(wait, request.signal);
    }
  }

  async #attempt({ route, path, method, headers, body, signal }: Prepared, at: number, timeout: number): Promise<Received> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(new DOMException("no answer in time", "TimeoutError")), Math.min(timeout, longest));
    try {
      const either = signal ? AbortSignal.any([signal, abort.signal]) : abort.signal;
      const answer = await (this.#options.fetch ?? fetch)(this.#bases[at] + path, { method, headers, body, signal: either, redirect: "manual" }); // a redirect drops the key and turns POST into GET
      const streams = routes[route][2];
      return { answer, text: answer.ok && streams && isOf(answer, streams) ? null : await answer.text() };
    } finally {
      clearTimeout(timer);
    }
  }

  /** What tests replace. */
  protected now(): number { return performance.now(); }
  protected jitter(): number { return Math.random(); }
  protected sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((done, failed) => {
      const stop = () => { clearTimeout(timer); failed(signal!.reason as Error); };
      const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); done(); }, Math.min(milliseconds, longest));
      signal?.addEventListener("abort", stop, { once: true });
    });
  }
}

/** An id of 128 random bits: crypto.randomUUID is missing in pages on plain HTTP. */
function drawn(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Refuses NaN, which would make timers and comparisons wait for ever. */
function checkTime(option: string, value: unknown, least = 0): void {
  if (value === undefined || (typeof value === "number" && value >= least)) return;
  throw new TypeError(`${option} ${String(value)}: must be a number of milliseconds${least === 0 ? ", at least 0" : ""}`);
}

/** The problem that a refusal describes, or {} if it is garbled: the status decides. */
function documentOf({ answer, text }: Received, base: string): Partial<Document> {
  const to = answer.type === "opaqueredirect" ? "another URL, which browsers hide from scripts" : answer.status < 400 ? answer.headers.get("Location") : null;
  if (to !== null) return { detail: `${base || "the page's origin"} redirects to ${to}: set base to the URL that answers without a redirect` };
  try {
    return (isOf(answer, "application/problem+json") ? (JSON.parse(text!) as Document | null) : null) ?? {};
  } catch {
    return {};
  }
}

/** A part of a path: "." and ".." would make it another path. */
function part(value: string): string {
  if (value === "." || value === "..") throw new TypeError(`${JSON.stringify(value)}: is no name in a URL`);
  return encodeURIComponent(value);
}

/** The parameters that are not undefined, and each of a list. */
function given(values: Values): [string, string][] {
  return Object.entries(values).flatMap(([k, v]): [string, string][] => [v].flat().flatMap((one): [string, string][] => (one === undefined ? [] : [[k, String(one)]])));
}

/** A value for JSON, which has no NaN and no infinity: JSON.stringify writes null instead, which may stand for a default. */
function finite(key: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new TypeError(`${key}: ${value} is no number in JSON`);
  return value;
}

function isOf(answer: Response, mediaType: string): boolean {
  return answer.headers.get("Content-Type")?.split(";")[0]!.trim().toLowerCase() === mediaType;
}

function outcomeOf(choice: string | null | readonly Choice[]): Outcome {
  return choice === null || typeof choice === "string" ? { choice } : { choices: choice };
}

/** The milliseconds that the service asks to wait. */
function retryAfter(answer: Response): number {
  const text = answer.headers.get("Retry-After") ?? "";
  return Math.max((/^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()) || 0, 0);
}
