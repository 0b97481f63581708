"""The program vitrine, which the package contains."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from vitrine.client import AsyncClient, Client


class CommandError(Exception):
    """A failure of the program. Its text is what the program said."""


def binary() -> str:
    """The path of the program: $VITRINE_BINARY, the one in this package, or the one that the shell would find."""
    name = "vitrine.exe" if sys.platform == "win32" else "vitrine"
    packaged = Path(__file__).parent / "bin" / name
    named = os.environ.get("VITRINE_BINARY") or (str(packaged) if packaged.exists() else name)
    if program := shutil.which(named):
        return program
    if named == name:
        raise CommandError("this wheel is without the program vitrine: install the wheel of your platform, or name a program in VITRINE_BINARY")
    raise CommandError(f"{named}: there is no such program: see VITRINE_BINARY")


def main() -> NoReturn:
    """The command vitrine of this package."""
    arguments = [binary(), *sys.argv[1:]]
    if sys.platform == "win32":  # where exec returns to the shell at once
        sys.exit(subprocess.run(arguments).returncode)
    os.execv(arguments[0], arguments)


def run(*arguments: str, input: str | None = None) -> str:
    """Runs the program, and returns its standard output.

    >>> run("version").split()[0]
    'vitrine'
    """
    return finished(*arguments, input=input).stdout


def finished(*arguments: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the program to its end, and warns of its warnings in the caller's caller: the user's code."""
    done = subprocess.run([binary(), *arguments], input=input, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        raise CommandError(f"vitrine {' '.join(arguments)}: {done.stderr.rpartition('vitrine: error: ')[2].strip()}")
    for warning in re.findall("^vitrine: warning: (.*)", done.stderr, re.MULTILINE):
        warnings.warn(warning, stacklevel=3)
    return done


class Service(NamedTuple):
    """A running service."""

    url: str
    data: Path

    def client(self, **settings: Any) -> Client:
        return Client(self.url, **settings)

    def async_client(self, **settings: Any) -> AsyncClient:
        return AsyncClient(self.url, **settings)

    def _repr_html_(self) -> str:
        return f'a decision service at <a href="{self.url}">{self.url}</a>, with its log in <code>{self.data}</code>'


@contextmanager
def serve(data: str | Path | None = None, *, config: str | Path | None = None, demo: bool = False) -> Iterator[Service]:
    """Runs a service of one's own on a free port of this machine, until the end of the block.

    data    the directory of the log; a temporary one without it
    config  a configuration file; see docs/operations.md
    demo    whether it has a shop with simulated shoppers

    >>> with serve() as service, service.client() as client:
    ...     client.list_placements()
    {'placements': []}
    """
    with tempfile.TemporaryDirectory(prefix="vitrine-") if data is None else nullcontext(str(data)) as directory:
        arguments = [binary(), "serve", "--listen", "127.0.0.1:0", "--data", directory]
        arguments += [f"--config={config}"] if config else []
        arguments += ["--demo"] if demo else []
        if os.name == "posix":  # Jupyter interrupts a cell by SIGINT to the kernel's whole process group
            arguments = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *arguments]
        group = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # for Windows
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, encoding="utf-8", creationflags=group)
        assert process.stderr
        said: deque[str] = deque(maxlen=20)
        try:
            for line in process.stderr:
                said.append(line)
                entry = json.loads(line) if line.startswith("{") else {}
                if entry.get("msg") == "listening":
                    break
            else:
                raise CommandError(f"the service has not started: {''.join(said).strip()}")
            threading.Thread(target=deque, args=(process.stderr, 0), daemon=True).start()  # reads the rest
            yield Service(f"http://{entry['address']}", Path(directory))
        finally:
            process.terminate()
            process.wait()
