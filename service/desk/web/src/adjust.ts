import { placement, request, requestTagged } from "./api";

type Config = Record<string, any>;

// Draft is a change of a placement's settings that is not made yet.
interface Draft {
  before: Config;
  after: Config;
  tag: string;
}

// draft prepares a change of some settings of a placement. undefined takes a setting away.
export async function draft(name: string, change: (config: Config) => Config): Promise<Draft> {
  const { value, tag } = await requestTagged<Config>(placement(name));
  const { notes, warnings, ...before } = value;
  const after = Object.fromEntries(Object.entries({ ...before, ...change(before) }).filter(([, v]) => v !== undefined));
  return { before, after, tag };
}

// make makes the change of a draft, unless the placement has changed since.
export const make = (name: string, { after, tag }: Draft, query = "") => request("PUT", placement(name) + query, { body: after, headers: { "If-Match": tag } });

// adjust changes some settings of a placement, and returns the settings before.
export async function adjust(name: string, change: (config: Config) => Config, query = ""): Promise<Config> {
  const d = await draft(name, change);
  await make(name, d, query);
  return d.before;
}

// newWarnings returns the warnings of a draft that the present settings do not have. It refuses a draft that would lose
// what was learned.
export async function newWarnings(name: string, { before, after, tag }: Draft): Promise<string[]> {
  const preview = (body: Config) => request<{ lost?: unknown; placement: Config }>("POST", placement(name, "preview"), { body, headers: { "If-Match": tag } });
  const { lost, placement: then } = await preview(after);
  if (lost) throw new Error("Vitrine would forget what it has learned. Change this in the settings, where you choose what it keeps.");
  const warnings: string[] = then["warnings"] ?? [];
  const known: string[] = warnings.length > 0 ? (await preview(before)).placement["warnings"] ?? [] : [];
  return warnings.filter((w) => !known.includes(w));
}
