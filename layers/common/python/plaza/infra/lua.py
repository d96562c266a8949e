"""Lua scripts, loaded from files with their includes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_INCLUDE = re.compile(r"^ *--!include (\w+)$", re.MULTILINE)
_SHARED = Path(__file__).with_name("scripts")
_HEADER = re.compile(r"^--\[\[.*?\]\]\n", re.DOTALL)
_FUNCTION = re.compile(
    r"^local function (\w+)\((?:[^\n]* end\n|.*?^end\n)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Script:
    """A script: ``source`` is sent to Redis and has no header, ``sha`` is its SHA-1 in hex."""

    name: str
    source: str
    sha: str


@cache
def load_script(path: Path) -> Script:
    """Load the script in the file ``path``; ``--!include bloom`` inserts the functions of
    bloom.inc.lua that it uses."""

    def included(match: re.Match[str]) -> str:
        return find_include(path, match[1]).read_text()

    source = _drop_unused(_INCLUDE.sub(included, _HEADER.sub("", path.read_text())))
    return Script(
        path.stem, source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    )


def _drop_unused(source: str) -> str:
    """Return ``source`` without the local functions that it does not use: Lua creates all of them
    again in every run."""
    for function in reversed(list(_FUNCTION.finditer(source))):  # a function is above its users
        if len(re.findall(rf"\b{function[1]}\b", source)) == 1:
            source = source.replace(function[0], "")
    return source


def find_include(path: Path, name: str) -> Path:
    """Return the path of an include: in the folder of the script, else in infra/scripts."""
    beside = path.with_name(f"{name}.inc.lua")
    return beside if beside.exists() else _SHARED / beside.name
