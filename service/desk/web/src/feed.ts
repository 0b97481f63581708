import { Problem, send, signedOut } from "./api";

// LogEvent is an event of the log: see Event of the OpenAPI document.
export interface LogEvent {
  entry: number;
  kind: string;
  time: string;
  placement: string;
  decision_id?: string;
  source?: string;
  shown?: string[];
  position?: number;
  taken?: { position: number }[];
}

// Parser takes the messages of server-sent events out of a text that comes in parts.
export class Parser {
  private rest = "";
  last = ""; // the id of the last message

  take(text: string): LogEvent[] {
    const events: LogEvent[] = [];
    const blocks = (this.rest + text).split("\n\n");
    this.rest = blocks.pop()!;
    for (const block of blocks) {
      let kind = "", data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("id: ")) this.last = line.slice(4);
        if (line.startsWith("event: ")) kind = line.slice(7);
        if (line.startsWith("data: ")) data = line.slice(6);
      }
      if (data && kind !== "end") events.push({ ...JSON.parse(data), kind, entry: Number(this.last) });
    }
    return events;
  }
}

// follow calls each with the events of a placement after an entry, until it is stopped. A connection that ends begins again where it
// ended. live says whether there is one, and why not.
export async function follow(placement: string, after: number, stop: AbortSignal, each: (events: LogEvent[]) => void, live: (failure?: unknown) => void) {
  let last = String(after);
  while (!stop.aborted) {
    try {
      const headers: Record<string, string> = last ? { "Last-Event-ID": last } : {};
      const answer = await send(`v1/events?placement=${encodeURIComponent(placement)}`, { headers, signal: stop, credentials: "same-origin" });
      if (!answer.ok || !answer.body) {
        if (answer.status === 401) dispatchEvent(new Event(signedOut));
        if (answer.status === 410) last = "";
        const problem = await answer.json().catch(() => ({}));
        throw new Problem(answer.status, answer.statusText, problem.detail ?? "");
      }
      live();
      const parser = new Parser();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        const events = parser.take(value);
        last = parser.last || last;
        if (events.length > 0) each(events);
      }
    } catch (failure) {
      if (!stop.aborted) live(failure);
    }
    if (!stop.aborted) await new Promise((go) => setTimeout(go, 3000));
  }
}
