"""A script blocks Redis while it runs, so its work is bounded and its header states the bound.

A script that loops, unpacks, reads a range or reads a whole key has a line ``Bounded by:`` with a
number or an argument. ``python -m bench scripts`` measures each script at that bound.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.policy.modules import PLAZA, product_files
from tests.unit.policy.test_lua import SCRIPTS, code_of, header_of

# The work or the reply of these grows with the key.
WHOLE_KEY = {
    "HGETALL", "HKEYS", "HVALS", "HSCAN", "SMEMBERS", "SORT", "KEYS", "SCAN", "SINTER", "SUNION",
    "SDIFF", "SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE", "ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE",
    "GEOSEARCH", "GEOSEARCHSTORE", "GEORADIUS", "LREM", "BITCOUNT", "BITOP",
}  # fmt: skip
RANGE = re.compile(r"\bcall\(\s*'(\w*RANGE\w*|ZREMRANGE\w+|ZPOP\w+|SPOP)'")
LOOP = re.compile(r"\b(?:while|repeat)\b|\bunpack\(|\bfor\b(?! \w+ = \d+, \d+ do)")
COMMAND = re.compile(r"\bcall\(\s*'(\w+)'")
BOUND = re.compile(r"^  Bounded by: ([^\n]+(?:\n {14}[^\n]+)*)\n\n", re.MULTILINE)
MEASURED = re.compile(r"\bARGV\[(\d+)\]|\b\d[\d,]*\b")


def name_of(file: Path) -> str:
    """Return a name such as ``commerce/shops/search_near.lua``."""
    return f"{file.relative_to(PLAZA).parts[0]}/{file.name}"


def needs_bound(code: str) -> bool:
    """Return whether the work of a script depends on the amount of data."""
    commands = set(COMMAND.findall(code))
    return bool(commands & WHOLE_KEY or RANGE.search(code) or LOOP.search(code))


def has_bound(header: str) -> bool:
    """Return whether a header's bound is a number or one of its arguments."""
    bound = BOUND.search(header)
    match = MEASURED.search(bound[1]) if bound else None
    if match is None:
        return False
    return match[1] is None or f"\n  ARGV[{match[1]}]" in header


def frees_at_once(code: str) -> bool:
    """Return whether a script frees a key of any size synchronously."""
    commands = COMMAND.findall(code)
    return "DEL" in commands or ("RENAME" in commands and "UNLINK" not in commands)


@pytest.mark.parametrize("file", SCRIPTS, ids=name_of)
def test_a_script_whose_work_grows_states_its_bound(file: Path) -> None:
    assert not needs_bound(code_of(file)) or has_bound(header_of(file))
    assert not frees_at_once(code_of(file)), "UNLINK frees in the background"


def test_python_frees_keys_in_the_background() -> None:
    """Which keys are large depends on data; UNLINK costs the same for a small one."""
    named = re.compile(r"""["']DEL["']""")
    assert [file.name for file in product_files() if named.search(file.read_text())] == []


@pytest.mark.parametrize(
    "code",
    [
        "for _, x in ipairs(redis.call('HGETALL', KEYS[1])) do end",
        "return redis.call('HKEYS', KEYS[1])",
        "return redis.call('ZRANGE', KEYS[1], 0, -1)",
        "redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', 7)",
        "return redis.call('GEOSEARCH', KEYS[1])",
        "for i = 1, #ARGV do end",
        "redis.call('SADD', KEYS[1], unpack(ARGV))",
        "while true do end",
        "repeat until false",
    ],
)
def test_the_search_finds_work_that_grows(code: str) -> None:
    assert needs_bound(code)


def test_constant_work_needs_no_bound() -> None:
    code = "for row = 0, 1 do redis.call('HGET', KEYS[1], row) end redis.call('UNLINK', KEYS[1])"
    assert not needs_bound(code)
    assert not frees_at_once(code)


@pytest.mark.parametrize(
    ("line", "good"),
    [
        ("Bounded by: 250 shops a call.", True),
        ("Bounded by: ARGV[1] shops.", True),
        ("Bounded by: ARGV[2] shops.", False),
        ("Bounded by: good behaviour.", False),
        ("Bounded.", False),
    ],
)
def test_a_bound_is_a_number_or_an_argument_of_the_script(line: str, good: bool) -> None:
    header = f"--[[ x: y.\n\n  ARGV[1]  how many\n\n  {line}\n\n  Returns nothing\n\n ]]"
    assert has_bound(header) is good


@pytest.mark.parametrize("code", ["redis.call('DEL', KEYS[1])", "redis.call('RENAME', a, b)"])
def test_the_search_finds_synchronous_frees(code: str) -> None:
    assert frees_at_once(code)
