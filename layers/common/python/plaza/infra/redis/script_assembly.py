"""The complete text of a Lua script, as it is sent to Redis.

``sam build`` assembles all scripts of the layer (layers/common/assemble.py). Where nothing was
built, in tests and in the local stack, a script is assembled when it is first used.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

_SHARED = Path(__file__).with_name("lua")
_INCLUDE = re.compile(r"^ *--!include (\w+)$", re.MULTILINE)
_HEADER = re.compile(r"^--\[\[.*?\]\]\n", re.DOTALL)
_WORD = re.compile(r"\w+")
_FUNCTION = re.compile(
    r"^local function (\w+)\((?:[^\n]* end\n|.*?^end\n)", re.DOTALL | re.MULTILINE
)


def assemble_script(path: Path) -> str:
    """Return the script in the file ``path`` without its header; ``--!include bloom`` inserts the
    functions of bloom.inc.lua that it uses."""

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
    return beside if beside.exists() else _SHARED / beside.name


def assemble_scripts(plaza: Path) -> int:
    """Replace the scripts of a copy of Plaza by their complete texts, and delete the includes.
    Return their number."""
    scripts = [path for path in plaza.rglob("*.lua") if not path.name.endswith(".inc.lua")]
    texts = {path: assemble_script(path) for path in scripts}
    for path, text in texts.items():
        path.write_text(text)
    for include in plaza.rglob("*.inc.lua"):
        include.unlink()
    return len(texts)
