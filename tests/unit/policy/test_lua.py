"""Each script's header is its contract: it names exactly what the body uses."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from plaza.commerce.shops.redis_store import SearchArguments
from plaza.infra.redis.script_assembly import find_include
from plaza.infra.redis.scripts import load_script
from tests.unit.policy.modules import PLAZA, nodes_of, product_files

SCRIPTS = sorted(file for file in PLAZA.rglob("*.lua") if not file.name.endswith(".inc.lua"))
INCLUDES = sorted(PLAZA.rglob("*.inc.lua"))

TYPES = "hash|zset|string|bitmap|set|list"
FIRST = re.compile(r"--\[\[ (\w+): [^\n]+[.?]\n")
KEY = re.compile(
    rf"^  KEYS\[(\d+)(?:\.\.\.)?\]  ((?:auth)?\{{<shard>\}}:\S+) +({TYPES})(?:: \S.*)?$",
    re.MULTILINE,
)
ARG = re.compile(r"^  ARGV\[(\d+)(\.\.\.)?\]  \S.*$", re.MULTILINE)
USED_KEY = re.compile(r"\bKEYS\[(\d+)\]")
USED_KEYS = re.compile(r"\bfor \w+ = (\d+), #KEYS")  # from here to the end
USED_ARG = re.compile(r"\bARGV\[(\d+)\]")
# From here to the end: for i = 3, #ARGV   unpack(ARGV, 3)
USED_REST = re.compile(r"\bfor \w+ = (\d+), #ARGV|\bunpack\(ARGV, (\d+)\)")
KEYLESS = "INFO"  # besides TIME, which has no argument
CALL = re.compile(r"redis\.p?call\(\s*'(\w+)'\s*,\s*([^,)]+)")

every_script = pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
every_file = pytest.mark.parametrize("file", [*SCRIPTS, *INCLUDES], ids=lambda file: file.name)


def header_of(file: Path) -> str:
    text = file.read_text()
    assert text.startswith("--[["), "a script starts with its contract"
    return text.partition("]]")[0] + "]]"


def code_of(file: Path) -> str:
    """Return the source as sent to Redis, without comments."""
    return re.sub(r"--[^\n]*", "", load_script(file).source)


def test_scripts_and_includes_are_found() -> None:
    assert {"gate.lua", "apply.lua", "hydrate.lua", "sweep.lua"} <= {f.name for f in SCRIPTS}
    assert INCLUDES


@every_script
def test_a_header_begins_with_the_name_and_one_sentence(file: Path) -> None:
    first = FIRST.match(header_of(file))
    assert first is not None
    assert first[1] == file.stem


@every_script
def test_a_header_states_what_is_returned_and_why_it_is_safe_to_repeat(file: Path) -> None:
    header = header_of(file)
    assert re.search(r"^  Returns \S", header, re.MULTILINE)
    assert re.search(r"^  Safe to repeat: \S[^\n]*\. ?\]\]$", header, re.MULTILINE)


@every_script
def test_the_parts_of_a_header_are_in_order(file: Path) -> None:
    header = header_of(file)
    marks = ["KEYS[", "ARGV[", "  Returns ", "  Safe to repeat: "]
    offsets = [header.find(mark) for mark in marks if mark in header]
    assert offsets == sorted(offsets)


@every_script
def test_each_key_is_listed_in_order_with_tag_and_type(file: Path) -> None:
    header = header_of(file)
    named = [int(number) for number, _, _ in KEY.findall(header)]
    assert named == list(range(1, len(named) + 1))
    assert len(named) == len(re.findall(r"^  KEYS", header, re.MULTILINE)), "a key without a type"


@every_script
def test_the_keys_of_a_header_are_those_of_the_body(file: Path) -> None:
    named = {int(number) for number, _, _ in KEY.findall(header_of(file))}
    code = code_of(file)
    variadic = {int(number) for number in USED_KEYS.findall(code)}
    assert named == {int(number) for number in USED_KEY.findall(code)} | variadic
    assert variadic == {
        int(n) for n in re.findall(r"^  KEYS\[(\d+)\.\.\.\]", header_of(file), re.M)
    }


@every_script
def test_the_arguments_of_a_header_are_those_of_the_body(file: Path) -> None:
    named = ARG.findall(header_of(file))
    numbers = [int(number) for number, _ in named]
    assert numbers == list(range(1, len(numbers) + 1))
    assert [rest for _, rest in named[:-1]] == [""] * len(named[:-1]), "only the last is variadic"

    code = code_of(file)
    rest = {int(a or b) for a, b in USED_REST.findall(code)}
    one_by_one = {int(number) for number in USED_ARG.findall(code)}
    assert one_by_one | rest == set(numbers)
    assert rest == ({numbers[-1]} if named and named[-1][1] else set())


@pytest.mark.parametrize(
    ("script", "arguments"), [("commerce/shops/lua/search_near.lua", SearchArguments)]
)
def test_arguments_with_names_are_in_the_order_of_the_header(
    script: str, arguments: type[SearchArguments]
) -> None:
    names = re.findall(r"^  ARGV\[\d+\]  (\w+): ", header_of(PLAZA / script), re.MULTILINE)
    assert tuple(names) == arguments._fields


@every_script
def test_the_codes_that_a_script_returns_are_in_its_header(file: Path) -> None:
    coded = r"(?:return \{?|code = |and |or |code, \w+, \w+ = [\w.]+, [\w.]+, )'([A-Z]{3,})'"
    returned = set(re.findall(coded, load_script(file).source))
    documented = header_of(file).partition("\n  Returns ")[2].partition("Safe to repeat")[0]
    assert returned == set(re.findall(r"\b[A-Z]{3,}\b", documented)) - {"UTC"}


@every_file
def test_no_script_builds_a_key_name(file: Path) -> None:
    code = re.sub(r"--\[\[.*?\]\]|--[^\n]*", "", file.read_text(), flags=re.DOTALL)
    calls = CALL.findall(code)
    assert len(re.findall(r"redis\.p?call\(", code)) == len(calls) + code.count("call('TIME')")
    for command, key in calls:
        if command == KEYLESS:
            continue
        assert re.fullmatch(r"KEYS\[\d+\]|[a-z_]+", key.strip()), f"{command} {key}"


@every_file
def test_each_key_of_a_call_comes_from_keys(file: Path) -> None:
    """The variables that calls use as keys are assigned from KEYS or are parameters."""
    code = re.sub(r"--\[\[.*?\]\]|--[^\n]*", "", file.read_text(), flags=re.DOTALL)
    known = {"key"} if file in INCLUDES else set()
    for names, values in re.findall(r"local ([\w, ]+) = (KEYS\[[^\n]*)", code):
        pairs = zip(names.split(", "), values.split(", "), strict=True)
        known |= {name for name, value in pairs if value.startswith("KEYS[")}
    for parameters in re.findall(r"local function \w+\(([^)]*)\)", code):
        known |= set(parameters.split(", "))
    for command, key in CALL.findall(code):
        if command != KEYLESS and not key.strip().startswith("KEYS["):
            assert key.strip() in known, f"{command} {key}"


@every_script
def test_a_script_is_loaded_by_a_module_of_its_context(file: Path) -> None:
    loaded = {
        node.value
        for module in product_files()
        if PLAZA / file.relative_to(PLAZA).parts[0] in module.parents
        for node in nodes_of(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert file.name in loaded


@pytest.mark.parametrize("file", INCLUDES, ids=lambda file: file.name)
def test_an_include_is_used_and_begins_with_its_name_and_a_sentence(file: Path) -> None:
    name = file.name.removesuffix(".inc.lua")
    used_by = [f for f in SCRIPTS if f"--!include {name}\n" in f.read_text()]
    assert used_by
    assert re.match(rf"-- {name}: [^\n]+\.[^\n]*\n", file.read_text())


@every_script
def test_an_included_file_exists_and_is_used(file: Path) -> None:
    own = re.sub(r"--[^\n]*", "", file.read_text().partition("]]")[2])
    included = re.findall(r"^ *--!include (\w+)$", file.read_text(), re.MULTILINE)
    assert "--!include" not in load_script(file).source
    texts = {name: find_include(file, name).read_text() for name in included}
    for name, text in texts.items():
        others = own + "".join(other for n, other in texts.items() if n != name)
        offered = re.findall(r"^local (?:function )?(\w+)", text, re.MULTILINE)
        assert any(re.search(rf"\b{word}\b", others) for word in offered), name


@every_script
def test_functions_that_a_script_does_not_use_are_not_sent(file: Path) -> None:
    source = load_script(file).source
    for name in re.findall(r"^local function (\w+)", source, re.MULTILINE):
        assert len(re.findall(rf"\b{name}\b", source)) > 1, name


@every_script
def test_functions_that_a_script_uses_are_sent(file: Path) -> None:
    included = "".join(include.read_text() for include in INCLUDES)
    source = re.sub(r"--[^\n]*", "", load_script(file).source)
    for name in set(re.findall(r"^local function (\w+)", included, re.MULTILINE)):
        if re.search(rf"(?<!function )\b{name}\(", source):
            assert f"local function {name}(" in source, name


@every_script
def test_a_script_is_deterministic(file: Path) -> None:
    assert "math.random" not in load_script(file).source
