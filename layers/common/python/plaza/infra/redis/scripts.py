"""Lua scripts, loaded from files with their includes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path

_INCLUDE = re.compile(r"^ *--!include (\w+)$", re.MULTILINE)
SHARED = Path(__file__).with_name("lua")
_HEADER = re.compile(r"^--\[\[.*?\]\]\n", re.DOTALL)
_WORD = re.compile(r"\w+")
_FUNCTION = re.compile(
    r"^local function (\w+)\((?:[^\n]* end\n|.*?^end\n)", re.DOTALL | re.MULTILINE
)


class Script:
    """A script: ``source`` is sent to Redis and has no header, ``sha`` is its SHA-1 in hex.

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
    """Return the script in the file ``path``; ``--!include bloom`` inserts the functions of
    bloom.inc.lua that it uses."""
    return Script(path.stem, lambda: _read_source(path))


def _read_source(path: Path) -> str:
    def included(match: re.Match[str]) -> str:
        return find_include(path, match[1]).read_text()

    return _drop_unused(_INCLUDE.sub(included, _HEADER.sub("", path.read_text())))


def _drop_unused(source: str) -> str:
    """Return ``source`` without the local functions that it does not use: Lua creates all of them
    again in every run."""
    words = Counter(_WORD.findall(source))
    for function in reversed(list(_FUNCTION.finditer(source))):  # a function is above its users
        if words[function[1]] == 1:
            source = source.replace(function[0], "")
            words.subtract(_WORD.findall(function[0]))
    return source


def find_include(path: Path, name: str) -> Path:
    """Return the path of an include: in the folder of the script, else in infra/redis/lua."""
    beside = path.with_name(f"{name}.inc.lua")
    return beside if beside.exists() else SHARED / beside.name
