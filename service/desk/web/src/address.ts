// address returns the address of a view: address("placements", name) is "#/placements/NAME", escaped.
export function address(...parts: string[]): string {
  return "#/" + parts.map(encodeURIComponent).join("/");
}
