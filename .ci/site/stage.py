"""Lays out the pages of the site: python stage.py TREE PAGES. A link from a page to a source file or a directory goes to a page that shows it."""

import os
import re
import subprocess
import sys
from pathlib import Path

tree, pages = Path(sys.argv[1]), Path(sys.argv[2])
files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=tree, check=True, capture_output=True, text=True).stdout.split()
staged = {f for f in files if (f.endswith(".md") and not f.startswith((".", "bench/", "python/", "typescript/", "service/"))) or f.endswith(".png")}
languages = {".go": "go", ".toml": "toml", ".yaml": "yaml", ".ts": "ts", ".html": "html", ".cff": "yaml"}


def write(name: str, text: str) -> None:
    (pages / name).parent.mkdir(parents=True, exist_ok=True)
    (pages / name).write_text(text)


def shown(target: str) -> str:
    """Returns the page that shows a file or a directory of the tree."""
    name = f"source/{target}.md"
    if (pages / name).exists():
        return name
    if (tree / target).is_dir():
        if any(f.endswith(".go") and os.path.dirname(f) == target for f in files):
            return f"reference/go/{target}.md" if (pages / f"reference/go/{target}.md").exists() else listing(name, target)
        return listing(name, target)
    text = (tree / target).read_text()
    write(name, f"---\nsearch: {{exclude: true}}\n---\n# {target}\n\n~~~~~~{languages.get(Path(target).suffix, 'text')}\n{text}\n~~~~~~\n")
    return name


def listing(name: str, target: str) -> str:
    inside = [f for f in files if os.path.dirname(f) == target and not f.endswith((".png", ".sha256"))]
    write(name, f"---\nsearch: {{exclude: true}}\n---\n# {target}\n\n" + "".join(f"- [{os.path.basename(f)}]({os.path.relpath(shown(f), os.path.dirname(name))})\n" for f in inside))
    return name


def linked(page: str, link: re.Match[str]) -> str:
    url, anchor = link[1], link[2] or ""
    if re.match(r"[a-z]+:", url):
        return link[0]
    target = os.path.normpath(os.path.join(os.path.dirname(page), url))
    if target not in staged:
        if not (tree / target).exists():
            sys.exit(f"{page}: there is no {url}")
        target = shown(target)
    return f"]({os.path.relpath(target, os.path.dirname(page) or '.')}{anchor})"


for page in sorted(staged):
    if page.endswith(".png"):
        (pages / page).parent.mkdir(parents=True, exist_ok=True)
        (pages / page).write_bytes((tree / page).read_bytes())
        continue
    text = re.sub(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", lambda m: linked(page, m), (tree / page).read_text())
    text = re.sub(r"(?m)^```sh \w+$", "```sh", text)  # the words that name the README's blocks
    text = re.sub(r"(?m)^(<!--.*-->)$", r"\1\n", text)  # a table begins after an empty line
    write(page, text)
