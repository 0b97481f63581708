import type { ComponentChildren } from "preact";

const numbers = new Map<string, Intl.NumberFormat>();

// number writes a value in the reader's locale; what is not a finite number is a dash.
export function number(value: number | null | undefined, options: Intl.NumberFormatOptions = { maximumFractionDigits: 3 }): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const key = JSON.stringify(options);
  let format = numbers.get(key);
  if (!format) numbers.set(key, (format = new Intl.NumberFormat(undefined, options)));
  return format.format(value).replace("-", "−");
}

export const count = (value: number | null | undefined) => number(value, { maximumFractionDigits: 0 });
export const percent = (value: number | null | undefined) => number(value, { style: "percent", maximumFractionDigits: 1 });
export const points = (value: number | null | undefined) => number(value, { style: "percent", maximumFractionDigits: 0 });

// portion writes a share that a person chose, with all its digits.
export const portion = (value: number | null | undefined) => number(value, { style: "percent", maximumFractionDigits: 2 });

// plural writes a number of things, such as "1 visit" or "1,200 visits".
export const plural = (value: number | null | undefined, one: string, more = `${one}s`) => `${count(value)} ${value === 1 ? one : more}`;

// duties returns the notes of a placement that say which fields its requests must contain, as sentences.
export const duties = (of: { notes?: string[] }) => (of.notes ?? []).filter((n) => n.includes("each request to /decisions must contain"))
  .map((n) => `${n.charAt(0).toLocaleUpperCase()}${n.slice(1).replace("baseline", "baseline (your own page)")}.`);

export const withSign = { signDisplay: "exceptZero" } as const; // a plus, too
export const short = { trailingZeroDisplay: "stripIfInteger" } as const; // without cents that are 0

// money writes an amount with the three digits that matter, in a currency if there is one.
export function money(value: number | null | undefined, currency: string | undefined, more: Intl.NumberFormatOptions = {}): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  const unit: Intl.NumberFormatOptions = { ...more, ...(currency ? { style: "currency", currency } : {}) };
  if (!currency || (size > 0 && size < 0.1)) return number(value, { ...unit, minimumFractionDigits: 0, maximumSignificantDigits: size < 0.1 ? 2 : 3 });
  if (size >= 100) return number(Number(value.toPrecision(3)), { ...unit, maximumFractionDigits: 0 });
  return number(value, { ...unit, maximumFractionDigits: 2 }); // also of yens
}

// price writes an amount that is known and not estimated, so all its digits matter.
export function price(value: number, currency: string | undefined, more: Intl.NumberFormatOptions = {}): string {
  const size = Math.abs(value);
  if (size > 0 && size < 1e-5) return money(value, currency, more);
  return number(value, { ...more, ...(currency ? ({ style: "currency", currency } as const) : {}), maximumFractionDigits: size < 1 ? 6 : 2 });
}

// isolated is a name within a text: names that are read from right to left keep their order in a list.
export const isolated = (name: string) => `\u2068${name}\u2069`;

// amounts writes amounts of a text of the service, such as "0.12 EUR", and large numbers in the reader's locale.
export const amounts = (text: string, currency: string | undefined) =>
  (currency ? text.replaceAll(new RegExp(`(-?[0-9][0-9.e+-]*) ${currency}\\b`, "g"), (_, value) => money(Number(value), currency)) : text)
    .replaceAll(/(?<= )\d{4,}(?= (?:pages|decisions|visits|outcomes|rounds|values|times)\b)/g, (n) => count(Number(n)));

// sentence writes a reason as a sentence, with names that may be read from right to left.
export const sentence = (s: string) => (s.charAt(0).toLocaleUpperCase() + s.slice(1) + ".").replaceAll(/"([^"]*)"/g, "“\u2068$1\u2069”");

const times = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

// moment writes a time of the API in the reader's locale and time zone.
export const moment = (time: string | undefined) => (time ? times.format(new Date(time)) : "–");

// duration writes a length of time.
export function duration(seconds: number): string {
  const unit = (value: number, name: string) => plural(Math.round(value), name);
  if (seconds < 120) return unit(seconds, "second");
  if (seconds < 7200) return unit(seconds / 60, "minute");
  return seconds < 172_800 ? unit(seconds / 3600, "hour") : unit(seconds / 86_400, "day");
}

// toTop scrolls to the message at the top of the page, and focuses it: the pressed button is gone.
export function toTop() {
  scrollTo(0, 0);
  document.getElementById("main")!.focus({ preventScroll: true });
}

// Card is a section with a heading.
export function Card(props: { title: string; end?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="card">
      {props.end ? <div class="head"><h2>{props.title}</h2>{props.end}</div> : <h2>{props.title}</h2>}
      {props.children}
    </section>
  );
}

// Figure is a number that answers a question, with its context below.
export function Figure(props: { name: string; value: string; tone?: string | undefined; children?: ComponentChildren }) {
  return (
    <div class="figure">
      <div class="quiet">{props.name}</div>
      <div class={`value ${props.tone ?? ""}`}>{props.value}</div>
      {props.children ? <div class="quiet">{props.children}</div> : null}
    </div>
  );
}

// Pick is a choice of one of a few.
export function Pick<T extends string | number>(props: { label: string; of: [string, T][]; value: T; change: (to: T) => void }) {
  return (
    <div class="pick" role="group" aria-label={props.label}>
      {props.of.map(([text, v]) => <button type="button" aria-pressed={v === props.value} onClick={() => props.change(v)}>{text}</button>)}
    </div>
  );
}

// Empty says that a list has nothing yet, and what would fill it.
export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

export function Loading() {
  return <p class="empty" role="status">Loading…</p>;
}

// Failure shows why something could not be shown.
export function Failure(props: { of: unknown }) {
  return <p class="failure" role="alert">{props.of instanceof Error ? props.of.message : String(props.of)}</p>;
}

// Warnings are what the service says of a change before it is made.
export function Warnings(props: { of: string[] }) {
  return props.of.length === 0 ? null : <ul class="health">{props.of.map((w) => <li class="warning"><strong>Warning:</strong> {w}</li>)}</ul>;
}

// Question says what a change does before it is made, below the button that asks for it. Without yes it cannot be made.
export function Question(props: { label: string; answer: string; yes: (() => void) | undefined; no: () => void; children: ComponentChildren }) {
  return (
    <section class="effect" aria-label={props.label}>
      {props.children}
      <div class="controls">
        {props.yes ? <button type="button" class="danger" onClick={props.yes}>{props.answer}</button> : null}
        <button type="button" onClick={props.no}>Leave it as it is</button>
      </div>
    </section>
  );
}

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  text?: boolean; // text is aligned to the left, numbers to the right
  wide?: boolean; // it is left out on narrow screens
  plain?: boolean; // its title is for those who cannot see it
}

// Table is a list with a caption for those who cannot see it. It scrolls sideways within itself. id names rows that move.
export function Table<T>(props: { caption: string; columns: Column<T>[]; rows: T[]; empty: ComponentChildren; id?: (row: T) => string }) {
  if (props.rows.length === 0) return <Empty>{props.empty}</Empty>;
  const of = (c: Column<T>) => [c.text ? "text" : "", c.wide ? "wide-only" : ""].join(" ").trim();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={props.caption}>
      <table>
        <caption>{props.caption}</caption>
        <thead>
          <tr>{props.columns.map((c) => (c.title ? <th scope="col" class={of(c)}>{c.plain ? <span class="hidden">{c.title}</span> : c.title}</th> : <td class={of(c)} />))}</tr>
        </thead>
        <tbody>
          {props.rows.map((row) => <tr key={props.id?.(row)}>{props.columns.map((c) => <td class={of(c)}>{c.cell(row)}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  );
}
