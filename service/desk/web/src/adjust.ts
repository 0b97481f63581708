import { placement, request, requestTagged } from "./api";

type Config = Record<string, any>;

// adjust changes some settings of a placement, and returns the settings before. undefined takes a setting away.
export async function adjust(name: string, change: (config: Config) => Config, query = ""): Promise<Config> {
  const { value, tag } = await requestTagged<Config>(placement(name));
  const { notes, warnings, ...before } = value;
  const after = Object.fromEntries(Object.entries({ ...before, ...change(before) }).filter(([, v]) => v !== undefined));
  await request("PUT", placement(name) + query, { body: after, headers: { "If-Match": tag } });
  return before;
}
