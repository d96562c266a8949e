"""Names follow docs/glossary.md: what it retired does not come back, and no name stands twice."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.policy.modules import PLAZA, ROOT, nodes_of, product_files, tracked, tree_of

SELF = Path(__file__).name
GLOSSARY = ROOT / "docs" / "glossary.md"
CONTRACT = ROOT / "functions" / "api" / "system" / "openapi.json"
ROOMS = (
    "layers",
    "functions",
    "local",
    "bench",
    "tests",
    "deploy",
    "ops",
    "tools",
    "cli",
    "clients",
)
GENERATED = {
    "clients/python/src/plaza_client/models.py",
    "clients/python/src/plaza_client/problems.py",
    "clients/python/src/plaza_client/resources.py",
    "clients/typescript/src/contract.ts",
    "clients/typescript/src/resources.ts",
    "docs/failures.md",
}
KEPT = {"CHANGELOG.md": "history", "docs/glossary.md": "it has the retired words"}
# Rooms in which a place is a shop's: its column, field and GEO point.
SHOPS = re.compile(r"shop|near|cells|town|smoke|agreement|test_web_app|test_binlog")


class Retired(NamedTuple):
    """A pattern of names that does not come back; ``instead`` says what to write."""

    pattern: str
    instead: str


RETIRED = (
    Retired(r"_?MOST_\w+|most_s|\w*_MOST_\w+", "MAX_...: a limit"),
    Retired(r"_?LEAST_\w+", "MIN_...: a limit"),
    Retired(r"\w+(?<!First)Question", "...Request: a body that a client sends"),
    Retired(r"\w+Answer", "...Response or the bare noun: what the API returns"),
    Retired(r"db_?ver|ver_us|ver", "version, db_version"),
    Retired(r"wish\w*", "provisional"),
    Retired(r"hint|hints", "precondition, expected state"),
    Retired(r"(un)?bury|buried|buries|burial", "tombstone (a target), dead-letter (a message)"),
    Retired(r"TargetGone", "TargetDeleted"),
    Retired(r"idol\w*", "author, target"),
    Retired(r"told|tell|tells", "projected, reported, sent"),
    Retired(r"said", "reported, returned, sent"),
    Retired(r"fact|facts", "event, events"),
    Retired(r"whom|whoever|somebody", "actor, owner, buyer, reader, caller"),
    Retired(r"put_off", "delay"),
    Retired(r"truth", "report, expected_..., recorded"),
    Retired(r"let_go|hand_over", "release, move"),
    Retired(r"(?!\w*foreign)\w*reign\w*", "term: the mastership under which Redis was loaded"),
    Retired(r"LogGate|\w*(?:log|event|pass)_gates?\w*", "barrier: the gate decides reactions"),
    Retired(r"WaitlistPlace|read_place", "position: of a buyer in a waitlist"),
    Retired(r"(?!Waitlist)[A-Z]\w+Position|ListPlace", "cursor, offset, sequence or watermark"),
    Retired(r"(?:\w+_)bells?(?:_\w+)?|bells?_\w+|\w*Bell\w*", "unread, notifications"),
    Retired(r"rang|rings|rang_\w+", "notify"),
    Retired(r"(?:\w+_)?votes?(?:_\w+)?", "likes of reviews"),
    Retired(r"\w*[Pp]reheat\w*|\w*[Ii]ntervention\w*", "warm_up; operator command"),
)
"""Whole words of names in Python, Lua, SQL and TypeScript."""

DATA = {
    "found": "what it is: row, match, report, entries",
    "one": "what it is: message, shop, item",
    "wanted": "what it is: targets, pairs, expected",
    "done": "what it is: completed, result; is_done",
}
"""Names that a function may not bind: they say nothing about the data."""

PLACE = Retired(r"_?places?", "position, slot, index, key, column; a place is where a shop is")

PROSE = {
    r"wish(?:es|ed)?": "state, request, accepted provisionally",
    r"somebody|someone|nobody(?!@)|everybody|everyone|anybody|anyone|whoever": "the role",
    r"said|told": "reported, sent, projected",
    r"(?:that|those) of": "the noun",
    r"at present|as ever|anew|likewise|put off|shall": "now, again, also, delayed",
    r"(?:is|are|was|were) away": "unavailable",
}
"""Whole words of documents, comments, docstrings and texts."""

GERUNDS = {
    "ranking": "the field's noun for an ordered list",
    "testing": "the name by which libraries ship helpers of tests",
    "string": "no gerund",
}


class Name(NamedTuple):
    """A name, and where it stands."""

    text: str
    line: str


def sources(*suffixes: str) -> list[Path]:
    """Tracked files of the rooms with one of these suffixes."""
    return [
        file
        for file in tracked()
        if file.suffix in suffixes
        and file.relative_to(ROOT).parts[0] in ROOMS
        and name_of(file) not in GENERATED
    ]


def scripts() -> list[Path]:
    """Tracked files of TypeScript that people write."""
    return [
        file
        for file in tracked()
        if file.suffix in (".ts", ".tsx") and name_of(file) not in GENERATED
    ]


@cache
def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def names_of_python(file: Path) -> list[Name]:
    """Every name that a file defines, assigns, takes or calls."""
    results = []
    for node in nodes_of(file):
        match node:
            case ast.FunctionDef(name=text) | ast.ClassDef(name=text):
                pass
            case ast.Name(id=text) | ast.arg(arg=text) | ast.Attribute(attr=text):
                pass
            case ast.keyword(arg=str(text)) | ast.alias(asname=str(text)):
                pass
            case _:
                continue
        line = getattr(node, "lineno", 0)
        results.append(Name(text, f"{name_of(file)}:{line}"))
    return results


def bindings_of_python(file: Path) -> list[Name]:
    """Every name that a function or module binds: variables and parameters, but no attributes."""
    classes = [node for node in nodes_of(file) if isinstance(node, ast.ClassDef)]
    fields = {item.target for node in classes for item in node.body if hasattr(item, "target")}
    results = []
    for node in nodes_of(file):
        match node:
            case ast.Name(id=text, ctx=ast.Store()) | ast.arg(arg=text) if node not in fields:
                results.append(Name(text, f"{name_of(file)}:{node.lineno}"))
    return results


def names_of_script(file: Path) -> list[Name]:
    """Every word of TypeScript outside of comments and texts."""
    return [
        Name(word, f"{name_of(file)}:{number}")
        for number, line in enumerate(code_of_script(file).splitlines(), 1)
        for word in re.findall(r"\w+", line)
    ]


BINDING = re.compile(
    r"\b(?:const|let)\s+[\[{]?\s*(\w+)|\bfunction\s+\w*\(\s*(\w+)|(\w+)\)?\s*=>|\blocal\s+(\w+)"
)


def bindings_of_script(file: Path) -> list[Name]:
    """The names that TypeScript or Lua binds, without those in the middle of a pattern."""
    code = code_of_script(file) if file.suffix != ".lua" else code_of_text(file)
    return [
        Name("".join(filter(None, groups)), f"{name_of(file)}:{number}")
        for number, line in enumerate(code.splitlines(), 1)
        for groups in BINDING.findall(line)
    ]


def code_of_script(file: Path) -> str:
    """Return TypeScript without comments and texts, in the same lines."""
    hidden = re.compile(
        r"/\*.*?\*/|(?<![:\\])//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|>[^<>{}=;()]*(?=[<{])", re.DOTALL
    )
    return hidden.sub(lambda m: "\n" * m[0].count("\n"), file.read_text())


def names_of_text(file: Path) -> list[Name]:
    """Every word of Lua or SQL outside of comments and string literals."""
    return [
        Name(word, f"{name_of(file)}:{number}")
        for number, line in enumerate(code_of_text(file).splitlines(), 1)
        for word in re.findall(r"\w+", line)
    ]


def code_of_text(file: Path) -> str:
    """Return Lua or SQL without comments and string literals, in the same lines."""
    hidden = re.compile(r"--\[\[.*?\]\]|--[^\n]*|'[^'\n]*'|\"[^\"\n]*\"", re.DOTALL)
    return hidden.sub(lambda m: "\n" * m[0].count("\n") or " ", file.read_text())


@pytest.fixture(scope="module")
def lines() -> dict[str, list[str]]:
    """Each name of the rooms, of the client and of the web pages, and the lines where it stands."""
    readers = {".py": names_of_python, ".lua": names_of_text, ".sql": names_of_text}
    results = defaultdict(list)
    for file in [*sources(*readers), *scripts()]:
        if file.name != SELF:
            for name in readers.get(file.suffix, names_of_script)(file):
                results[name.text].append(name.line)
    return results


@pytest.mark.parametrize("retired", RETIRED, ids=lambda retired: retired.instead)
def test_retired_names_do_not_come_back(retired: Retired, lines: dict[str, list[str]]) -> None:
    pattern = re.compile(rf"_?(?:{retired.pattern})")
    assert [
        f"{line} {text}: {retired.instead}"
        for text in lines
        if pattern.fullmatch(text)
        for line in lines[text]
    ] == []


def test_data_has_nouns_for_names() -> None:
    bound = [
        name
        for file in [*sources(".py", ".lua"), *scripts()]
        for name in (bindings_of_python if file.suffix == ".py" else bindings_of_script)(file)
    ]
    assert [
        f"{name.line} {name.text}: {DATA[name.text]}" for name in bound if name.text in DATA
    ] == []


def test_a_place_is_where_a_shop_is(lines: dict[str, list[str]]) -> None:
    assert [
        f"{line} {text}: {PLACE.instead}"
        for text in lines
        if re.fullmatch(PLACE.pattern, text)
        for line in lines[text]
        if not SHOPS.search(line)
    ] == []


def test_retired_words_do_not_come_back_in_prose() -> None:
    pattern = re.compile(rf"\b(?:{'|'.join(PROSE)})\b", re.IGNORECASE)
    texts = [
        file
        for file in [*sources(".py", ".lua", ".diff"), *scripts(), CONTRACT, *documents()]
        if file.name not in (SELF, "test_contract.py")
    ]
    assert [
        f"{name_of(file)}:{number} {match[0]}: {instead_of(match[0])}"
        for file in texts
        if pattern.search(text := file.read_text())
        for number, line in enumerate(text.splitlines(), 1)
        for match in pattern.finditer(line)
    ] == []


def instead_of(words: str) -> str:
    return next(PROSE[p] for p in PROSE if re.fullmatch(p, words, re.IGNORECASE))


def documents() -> list[Path]:
    """Tracked documents, templates and workflows that people write."""
    return [
        file
        for file in tracked()
        if file.suffix in (".md", ".yaml", ".yml") and name_of(file) not in {*GENERATED, *KEPT}
    ]


def test_the_search_finds_a_retired_name(tmp_path: Path) -> None:
    assert re.compile(RETIRED[0].pattern).fullmatch("_MOST_TRIES")
    file = ROOT / "web" / "shared" / "hooks.ts"
    assert {"useRead", "signal"} <= {name.text for name in names_of_script(file)}
    assert "controller" not in {name.text for name in names_of_script(file)}
    assert {"cache", "load"} <= {name.text for name in bindings_of_script(file)}


def test_no_module_is_a_gerund() -> None:
    results = [
        str(file.relative_to(ROOT))
        for file in sources(".py")
        if (last := file.stem.rsplit("_", 1)[-1]).endswith("ing")
        and last not in GERUNDS
        and not file.stem.startswith("test_")
    ]
    assert results == []


def test_no_class_name_stands_twice_in_the_layer() -> None:
    files_of: dict[str, list[str]] = defaultdict(list)
    for file in product_files():
        if file.is_relative_to(PLAZA):
            for node in tree_of(file).body:
                if isinstance(node, ast.ClassDef):
                    files_of[node.name].append(str(file.relative_to(PLAZA)))
    assert {name: files for name, files in files_of.items() if len(files) > 1} == {}


def rows_of_glossary() -> list[tuple[str, str, str]]:
    """(term, meaning, retired words) of each row."""
    rows = re.findall(r"^\| (.+?) \| (.+?) \| ?(.*?) ?\|$", GLOSSARY.read_text(), re.MULTILINE)
    return [row for row in rows if row[0] not in ("term", "---")]


def test_the_glossary_is_sorted_and_names_each_term_once() -> None:
    terms = [re.sub(r"[^\w -]", "", term).casefold() for term, _, _ in rows_of_glossary()]
    assert len(terms) > 40
    assert terms == sorted(set(terms))


def test_every_term_of_the_glossary_is_in_use() -> None:
    text = "\n".join(
        file.read_text(errors="replace").casefold()
        for file in [
            *sources(".py", ".lua", ".sql"),
            ROOT / "template.yaml",
            *ROOT.glob("docs/**/*.md"),
        ]
        if file != GLOSSARY
    )
    text = re.sub(r"[-_\s]+", " ", text)
    unused = []
    for row in rows_of_glossary():
        terms = re.split(r"[,;] | \(|\)", re.sub(r"[`…]|\.\.\.|\.py", "", row[0]).casefold())
        expected = [re.sub(r"[-_\s]+", " ", term).strip() for term in terms]
        unused += [term for term in expected if term and term not in text]
    assert unused == []
