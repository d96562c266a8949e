"""Names follow docs/glossary.md: what it retired does not come back, and no name stands twice."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.policy.modules import PLAZA, ROOT, nodes_of, product_files, tracked, tree_of

SELF = Path(__file__).name
GLOSSARY = ROOT / "docs" / "glossary.md"
ROOMS = ("layers", "functions", "cli", "deploy", "local", "ops", "tools", "bench", "tests")


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
    Retired(r"let_go|hand_over", "release, move"),
)
"""Whole words of Python names, Lua and SQL; prose is reviewed by people."""

GERUNDS = {
    "ranking": "the field's noun for an ordered list",
    "string": "no gerund",
}


class Name(NamedTuple):
    """A name, and where it stands."""

    text: str
    place: str


def sources(*suffixes: str) -> list[Path]:
    """Tracked files of the rooms with one of these suffixes."""
    return [
        file
        for file in tracked()
        if file.suffix in suffixes and file.relative_to(ROOT).parts[0] in ROOMS
    ]


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
        results.append(Name(text, f"{file.relative_to(ROOT)}:{line}"))
    return results


def names_of_text(file: Path) -> list[Name]:
    """Every word of Lua or SQL outside of comments and string literals."""
    text = file.read_text()
    text = re.sub(r"--\[\[.*?\]\]", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    results = []
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r"--.*|'[^']*'|\"[^\"]*\"", " ", line)
        place = f"{file.relative_to(ROOT)}:{number}"
        results += [Name(word, place) for word in re.findall(r"\w+", code)]
    return results


@pytest.fixture(scope="module")
def places() -> dict[str, list[str]]:
    """Each name of the rooms, and where it stands."""
    results = defaultdict(list)
    for file in sources(".py", ".lua", ".sql"):
        if file.name != SELF:
            names = names_of_python(file) if file.suffix == ".py" else names_of_text(file)
            for name in names:
                results[name.text].append(name.place)
    return results


@pytest.mark.parametrize("retired", RETIRED, ids=lambda retired: retired.instead)
def test_retired_names_do_not_come_back(retired: Retired, places: dict[str, list[str]]) -> None:
    pattern = re.compile(rf"_?(?:{retired.pattern})")
    assert [
        f"{place} {text}: {retired.instead}"
        for text in places
        if pattern.fullmatch(text)
        for place in places[text]
    ] == []


def test_the_search_finds_a_retired_name() -> None:
    assert re.compile(RETIRED[0].pattern).fullmatch("_MOST_TRIES")


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
    places: dict[str, list[str]] = defaultdict(list)
    for file in product_files():
        if file.is_relative_to(PLAZA):
            for node in tree_of(file).body:
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(file.relative_to(PLAZA)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


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
