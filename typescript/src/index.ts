import { routes, type Answer, type CatalogueItem, type Choice, type DecideRequest, type ItemsChanged, type Outcome, type Problem as Document, type Routes } from "./api.js";

export type * from "./api.js";
export { routes };

/** A refusal: its HTTP status, its kind such as "conflict", and the service's answer, if the service has answered. */
export class Problem extends Error {
  readonly kind: string;
  constructor(readonly status: number, readonly document: Partial<Document>) {
    super(`${status} ${document.detail ?? "not an answer of the service"}`);
    this.kind = document.type?.split(":").pop() ?? "";
  }
  /** Whether the service cannot take requests now. */
  get away(): boolean {
    return [429, 502, 503, 504].includes(this.status);
  }
}

export interface Options {
  /** The URL of the service, or several with commas between them. The page's own origin if left out. */
  readonly base?: string;
  /** The token of an API key. */
  readonly key?: string;
  /** Milliseconds that an attempt may take: 10 s. */
  readonly timeout?: number;
  /** Milliseconds from the first attempt to the beginning of the last: 30 s; negative tries each address once. */
  readonly patience?: number;
  readonly fetch?: typeof fetch;
}

type Takes<K extends keyof Routes> = {} extends Routes[K]["takes"] ? [takes?: Routes[K]["takes"]] : [takes: Routes[K]["takes"]];
type Values = Record<string, string | number | boolean>;
interface Parts { path?: Record<string, string>; query?: Values; header?: Values; body?: unknown }
interface Received { answer: Response; text: string }

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
    this.#bases = (options.base ?? "").split(",").map((base) => base.trim().replace(/\/$/, ""));
    if (options.base !== undefined && !this.#bases.every((base) => /^https?:\/\/[^/]/.test(base))) {
      throw new TypeError(`base ${JSON.stringify(options.base)}: must be a URL such as "http://127.0.0.1:8080", or several with commas between them`);
    }
  }

  /** Decides which items to show. If the service is away, or takes longer than within (1 s), the page is the fallback: item ids,
   *  which get an empty decision_id. Reports about such a page do nothing. Without a fallback, within limits the patience. */
  async decide(placement: string, request: DecideRequest, how: { fallback?: readonly string[]; within?: number } = {}): Promise<Answer> {
    const body = { ...request, decision_id: request.decision_id ?? crypto.randomUUID() }; // so that retries are one decision
    const within = how.within ?? (how.fallback && 1000);
    try {
      return await this.#call("decide", { path: { name: placement }, body }, within);
    } catch (failure) {
      if (!how.fallback || (failure instanceof Problem && !failure.away)) throw failure;
      const assortment = how.fallback.map((id, i) => ({ id, position: i + 1, choice_probability: null }));
      return { decision_id: "", assortment, outside_probability: null, expected_revenue: null, propensity: null, policy_entry: 0 };
    }
  }

  /** Reports the id of the item that was taken, null for none, or a list of the items that were taken. */
  async outcome(placement: string, decision: string, choice: string | null | Choice[]): Promise<void> {
    if (decision) await this.call("outcome", { path: { name: placement, id: decision }, body: outcomeOf(choice) });
  }

  /** Reports an outcome while the page unloads, and does not wait for the answer. */
  beacon(placement: string, decision: string, choice: string | null | Choice[]): void {
    if (!decision) return;
    const url = this.#url("outcome", { path: { name: placement, id: decision } }, this.#first);
    const body = JSON.stringify(outcomeOf(choice));
    const ours = new URL(url, globalThis.location?.href).origin === globalThis.location?.origin; // a beacon has no key, and asks no other origin
    if (ours && !this.#options.key && navigator.sendBeacon(url, new Blob([body], { type: "application/json" }))) return;
    void (this.#options.fetch ?? fetch)(url, { method: "POST", headers: this.#headers(true), body, keepalive: true }).catch(() => {});
  }

  /** Puts items into the catalogue of a placement. */
  items(placement: string, items: readonly CatalogueItem[]): Promise<ItemsChanged> {
    return this.call("putItems", { path: { name: placement }, body: { items } });
  }

  /** Calls any route. A stream is returned as the Response. */
  call<K extends keyof Routes>(route: K, ...[takes]: Takes<K>): Promise<Routes[K]["answer"]> {
    return this.#call(route, (takes ?? {}) as Parts);
  }

  async #call<K extends keyof Routes>(route: K, takes: Parts, within?: number): Promise<Routes[K]["answer"]> {
    const { answer, text } = await this.#send(route, takes, within);
    if (!answer.headers.get("Content-Type")?.startsWith("application/json")) return (text || answer.status === 204 || !answer.ok ? null : answer) as Routes[K]["answer"];
    return JSON.parse(text) as Routes[K]["answer"];
  }

  #url(route: keyof Routes, { path = {}, query = {} }: Parts, at: number): string {
    const parameters = new URLSearchParams(Object.entries(query).flatMap(([k, v]) => (v === undefined ? [] : [[k, String(v)]]))).toString();
    return this.#bases[at] + routes[route][1].replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? "")) + (parameters && `?${parameters}`);
  }

  #headers(body: boolean): Record<string, string> {
    return { ...(this.#options.key && { Authorization: `Bearer ${this.#options.key}` }), ...(body && { "Content-Type": "application/json" }) };
  }

  /** Tries until an attempt succeeds, fails for good, or would begin after the patience. */
  async #send(route: keyof Routes, takes: Parts, within?: number): Promise<Received> {
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
          received = await this.#attempt(route, takes, at, within === undefined ? timeout : Math.min(timeout, left));
        } catch (error) {
          failure = error;
        }
        if (received) {
          if (received.answer.ok) return received;
          const problem = received.answer.headers.get("Content-Type")?.startsWith("application/problem+json") ? (JSON.parse(received.text) as Document) : {};
          const refusal = (failure = new Problem(received.answer.status, problem));
          if (routes[route][0] === "DELETE" && asked > 1 && refusal.kind === "not-found") return received; // deleted by an earlier attempt
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
      await this.sleep(wait);
    }
  }

  async #attempt(route: keyof Routes, takes: Parts, at: number, timeout: number): Promise<Received> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(new DOMException("no answer in time", "TimeoutError")), timeout);
    try {
      const body = takes.body === undefined ? null : JSON.stringify(takes.body);
      const headers = { ...this.#headers(body !== null), ...(takes.header as Record<string, string>) };
      const answer = await (this.#options.fetch ?? fetch)(this.#url(route, takes, at), { method: routes[route][0], headers, body, signal: abort.signal });
      const stream = answer.ok && /event-stream|ndjson/.test(answer.headers.get("Content-Type") ?? "");
      return { answer, text: stream ? "" : await answer.text() };
    } finally {
      clearTimeout(timer);
    }
  }

  /** What tests replace. */
  protected now(): number { return performance.now(); }
  protected jitter(): number { return Math.random(); }
  protected sleep(milliseconds: number): Promise<void> { return new Promise((done) => setTimeout(done, milliseconds)); }
}

function outcomeOf(choice: string | null | Choice[]): Outcome {
  return Array.isArray(choice) ? { choices: choice } : { choice };
}

/** The milliseconds that the service asks to wait. */
function retryAfter(answer: Response): number {
  const text = answer.headers.get("Retry-After") ?? "";
  return Math.max((/^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()) || 0, 0);
}
