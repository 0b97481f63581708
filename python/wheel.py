"""Puts the program into a wheel: VITRINE_BINARY names its file and VITRINE_PLATFORM the platform's tag."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Program(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        platform = os.environ.get("VITRINE_PLATFORM")
        if platform is None:  # such as an editable install, which uses the program of the shell
            return
        name = "vitrine.exe" if platform.startswith("win") else "vitrine"
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][os.environ["VITRINE_BINARY"]] = f"vitrine/bin/{name}"
