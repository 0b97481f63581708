// Problem is an error answer of the service (RFC 9457).
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
    readonly type = "",
  ) {
    super(detail || title);
  }
}

// reached is the event of a request that has or has not reached the service: its detail says which.
export const reached = "reached";

// send is fetch, which tells the page whether the service answers.
export async function send(path: string, init: RequestInit): Promise<Response> {
  try {
    const answer = await fetch(path, init);
    dispatchEvent(new CustomEvent(reached, { detail: true }));
    return answer;
  } catch (failure) {
    if (init.signal?.aborted && init.signal.reason?.name !== "TimeoutError") throw failure;
    dispatchEvent(new CustomEvent(reached, { detail: false }));
    throw new Error("The service does not answer.");
  }
}

// signedOut is the event of an answer that asks for a key.
export const signedOut = "signed-out";

// request asks the service. path is relative to the page: "v1/placements". A body is sent as JSON.
export async function request<T>(method: string, path: string, options: Options = {}): Promise<T> {
  return (await answered<T>(method, path, options)).value;
}

// requestTagged gets a resource with its ETag.
export const requestTagged = <T>(path: string) => answered<T>("GET", path, {});

interface Options {
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

async function answered<T>(method: string, path: string, options: Options): Promise<{ value: T; tag: string }> {
  const init: RequestInit = { method, headers: { ...options.headers }, credentials: "same-origin" };
  if (method === "GET") init.signal = AbortSignal.any([AbortSignal.timeout(60_000), ...(options.signal ? [options.signal] : [])]);
  else if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    init.body = JSON.stringify(options.body);
    (init.headers as Record<string, string>)["Content-Type"] = "application/json";
  }
  const answer = await send(path, init);
  const text = await answer.text();
  if (answer.status === 401 && path !== "v1/session") dispatchEvent(new Event(signedOut));
  if (!answer.ok) {
    let problem: { title?: string; detail?: string; type?: string } = {};
    try {
      problem = JSON.parse(text);
    } catch {
      problem = { detail: text };
    }
    if (answer.status === 401 && path !== "v1/session") problem.detail = "Your session has ended. Sign in again.";
    if (answer.status === 412) problem.detail = unmet(problem.detail ?? "");
    if (problem.type?.endsWith(":relearning")) problem.detail = "Vitrine is learning a change from the log. Wait until it is made, or cancel it under Settings.";
    if (problem.type?.endsWith(":not-ready")) problem.detail = "The change waits until Vitrine has read the log, and for the end of an alarm if one stands. Try again later.";
    problem.detail = problem.detail?.replace(/^\/[\w/]+(?=: )/, (field) => field.slice(1).replaceAll(/\/(\d+)/g, (_, at) => ` ${Number(at) + 1}`).replaceAll("/", ", ").replaceAll("_", " ")) // people count from 1;
    throw new Problem(answer.status, problem.title ?? answer.statusText, problem.detail ?? "", problem.type);
  }
  return { value: (text ? JSON.parse(text) : undefined) as T, tag: answer.headers.get("ETag") ?? "" };
}

export const get = <T>(path: string, signal?: AbortSignal) => request<T>("GET", path, signal ? { signal } : {});

// unmet says in words that a condition of a change is not met.
function unmet(detail: string): string {
  if (detail.startsWith("If-None-Match")) return "There is a placement of this name already.";
  return detail.includes("no such") ? "The placement was deleted, in another tab or by somebody else." : "The placement has changed since you opened this page, in another tab or by somebody else.";
}

// nameOf makes a placement's name from typed text.
export const nameOf = (typed: string) => typed.replaceAll(/[^A-Za-z0-9._:-]/g, "-").replace(/^\.+/, "");

// placement returns the path of a placement's resource: placement("home", "stats").
export function placement(name: string, ...rest: string[]): string {
  return ["v1", "placements", name, ...rest].map(encodeURIComponent).join("/");
}
