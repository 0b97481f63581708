"""Prints the OpenAPI document of a service as a page: python http.py openapi.json"""

import json
import re
import sys
from typing import Any

document = json.load(open(sys.argv[1]))


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def kind(schema: dict[str, Any]) -> str:
    """Returns the type of a value in a few words, with links to the schemas."""
    if ref := schema.get("$ref"):
        name = ref.rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("enum"):
        return " or ".join(f"`{json.dumps(c)}`" for c in choices)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(kind(s) for s in schema[word])
    types = schema.get("type", "anything")
    words = []
    for t in types if isinstance(types, list) else [types]:
        if t == "array":
            words.append(f"list of {kind(schema.get('items', {}))}")
        elif t == "object" and isinstance(schema.get("additionalProperties"), dict):
            words.append(f"map to {kind(schema['additionalProperties'])}")
        else:
            words.append(t)
    least, most = schema.get("minimum"), schema.get("maximum")
    bounds = f", {least} to {most}" if None not in (least, most) else f", from {least}" if least is not None else f", to {most}" if most is not None else ""
    return " or ".join(words) + bounds


def table(rows: list[tuple[str, ...]], *head: str) -> str:
    if not rows:
        return ""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell(c) for c in row) + " |\n" for row in lines) + "\n"


def content(part: dict[str, Any]) -> str:
    return ", ".join(f"{kind(c.get('schema', {}))} as `{media}`" if media != "application/json" else kind(c.get("schema", {})) for media, c in part.get("content", {}).items())


print(f"# HTTP\n\n{document['info']['description']} A running service has this page with requests to try at `/docs`, and the document at `/openapi.json`.\n")
for tag in document["tags"]:
    print(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            if route["tags"][0] != tag["name"]:
                continue
            heading, *more = re.split("[.:] ", route["summary"].rstrip("."), maxsplit=1)
            print(f"### {heading}\n\n`{method.upper()} {path}`\n\n{''.join(m[0].upper() + m[1:] + '.' for m in more)}\n\n{route.get('description', '')}\n")
            rows = [(f"`{p['name']}`" + (" (header)" if p["in"] == "header" else ""), kind(p["schema"]), p.get("description", "")) for p in route.get("parameters", []) if p["in"] != "path"]
            print(table(rows, "parameter", "type", ""))
            if body := route.get("requestBody"):
                print(f"Body: {content(body)}\n")
                for example in (c["example"] for c in body["content"].values() if "example" in c):
                    print(f"```json\n{json.dumps(example, indent=2, ensure_ascii=False)}\n```\n")
            answers = route["responses"].items()
            print(table([(status, content(a) or a["description"]) for status, a in answers if status < "400"], "status", "answer"))
            if problems := [status for status, _ in answers if status >= "400"]:
                print(f"[Problems](#problem): {', '.join(problems)}\n")
print("## Schemas\n")
for name, schema in sorted(document["components"]["schemas"].items()):
    print(f"### {name}\n\n{schema.get('description', '')}\n")
    required = schema.get("required", [])
    rows = [(f"`{field}`" + (" (required)" if field in required else ""), kind(s), s.get("description", "")) for field, s in schema.get("properties", {}).items()]
    print(table(rows, "field", "type", "") or f"{kind(schema)}\n")
