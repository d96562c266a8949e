"""Lua scripts, loaded from files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache, cached_property, partial
from pathlib import Path

SHARED = Path(__file__).with_name("lua")


class Script:
    """A script: ``source`` is sent to Redis, ``sha`` is its SHA-1 in hex.

    ``read`` returns the source, and is called when it is first used: a function imports many
    scripts and runs few.
    """

    def __init__(self, name: str, read: Callable[[], str]) -> None:
        self.name = name
        self._read = read

    @cached_property
    def source(self) -> str:
        return self._read()

    @cached_property
    def sha(self) -> str:
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


@cache
def load_script(path: Path) -> Script:
    """Return the script in the file ``path``."""
    return Script(path.stem, partial(_read_source, path))


def _read_source(path: Path) -> str:
    text = path.read_text()
    if not text.startswith("--[["):  # the build removed its header
        return text
    from plaza.infra.redis.script_assembly import assemble_script

    return assemble_script(path)
