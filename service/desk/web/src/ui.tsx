import type { ComponentChildren } from "preact";

const numbers = new Map<string, Intl.NumberFormat>();

// number writes a value in the reader's locale; what is not a finite number is a dash.
export function number(value: number | null | undefined, options: Intl.NumberFormatOptions = { maximumFractionDigits: 3 }): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const key = JSON.stringify(options);
  let format = numbers.get(key);
  if (!format) numbers.set(key, (format = new Intl.NumberFormat(undefined, options)));
  return format.format(value);
}

export const count = (value: number | null | undefined) => number(value, { maximumFractionDigits: 0 });
export const percent = (value: number | null | undefined) => number(value, { style: "percent", maximumFractionDigits: 1 });

const times = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

// moment writes a time of the API in the reader's locale and time zone.
export const moment = (time: string | undefined) => (time ? times.format(new Date(time)) : "–");

// Card is a section with a heading.
export function Card(props: { title: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{props.title}</h2>
      {props.children}
    </section>
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

export interface Column<T> {
  title: string;
  cell: (row: T) => ComponentChildren;
  text?: boolean; // text is aligned to the left, numbers to the right
}

// Table is a list with a caption for those who cannot see it. It scrolls sideways within itself.
export function Table<T>(props: { caption: string; columns: Column<T>[]; rows: T[]; empty: ComponentChildren }) {
  if (props.rows.length === 0) return <Empty>{props.empty}</Empty>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={props.caption}>
      <table>
        <caption>{props.caption}</caption>
        <thead>
          <tr>{props.columns.map((c) => <th scope="col" class={c.text ? "text" : ""}>{c.title}</th>)}</tr>
        </thead>
        <tbody>
          {props.rows.map((row) => <tr>{props.columns.map((c) => <td class={c.text ? "text" : ""}>{c.cell(row)}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  );
}
