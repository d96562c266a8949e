"""The rooms of infra: arrows run down, no import is circular, nothing is a context's."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.policy.modules import LAYER, PLAZA, ROOT, imports_of, nodes_of, tracked, tree_of

INFRA = PLAZA / "infra"
ROOMS = ("runtime", "aws", "redis", "mysql", "queues", "derived", "http", "jobs")
"""From the ground up: a room imports from rooms before it."""

PACKAGES = ("cli", "deploy", "ops", "local", "tools", "bench", "tests")
MODULES = {
    ".".join(file.relative_to(base).with_suffix("").parts).removesuffix(".__init__"): file
    for base, package in ((LAYER, "plaza"), *((ROOT, package) for package in PACKAGES))
    for file in sorted((base / package).rglob("*.py"))
}
_ROUTE = re.compile(r"((GET|HEAD|POST|PUT|PATCH|DELETE) )?/[a-z]+(/|$)")


def shown(file: Path) -> str:
    return str(file.relative_to(PLAZA))


def imported_by(file: Path) -> set[str]:
    """Return our modules that a file imports, also in functions and by LazyModule."""
    names = {f"{imported.module}.{imported.name}" for imported in imports_of(file)}
    names |= {imported.module for imported in imports_of(file)}
    for node in nodes_of(file):
        match node:
            case ast.Call(
                func=ast.Name(id="LazyModule" | "import_module"),
                args=[ast.Constant(value=str(name))],
            ):
                names.add(name)
    return names & set(MODULES)


def find_circle(arrows: Mapping[str, set[str]]) -> set[str]:
    """Return the nodes that are left when all without an arrow to another are removed."""
    left = {node: set(targets) for node, targets in arrows.items()}
    while leaves := {node for node, targets in left.items() if not targets & set(left)}:
        left = {node: targets for node, targets in left.items() if node not in leaves}
    return set(left)


def test_infra_has_these_rooms_and_no_module_beside_them() -> None:
    assert {file.parent.name for file in INFRA.glob("*/__init__.py")} == set(ROOMS)
    assert {file.name for file in INFRA.glob("*.py")} == {"__init__.py", "contexts.py"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_one_docstring(room: str) -> None:
    """So that importing it costs nothing."""
    assert len(tree_of(INFRA / room / "__init__.py").body) == 1


def test_no_room_is_imported_as_a_name() -> None:
    """``from plaza.infra import redis`` would give the room, which has no names."""
    for file in tracked():
        for imported in imports_of(file) if file.suffix == ".py" else ():
            assert imported.module != "plaza.infra" or imported.name not in ROOMS, file


@pytest.mark.parametrize("file", sorted(INFRA.glob("*/*.py")), ids=shown)
def test_a_room_imports_from_rooms_below_it(file: Path) -> None:
    above = ROOMS[ROOMS.index(file.parent.name) + 1 :]
    for name in imported_by(file):
        assert not name.startswith(tuple(f"plaza.infra.{room}." for room in above)), name


def test_no_import_is_circular() -> None:
    """Imports inside functions count: they hide a circle, and do not cut it."""
    arrows = {name: imported_by(file) - {name} for name, file in MODULES.items()}
    packages = {name for name, file in MODULES.items() if file.name == "__init__.py"}
    assert find_circle({name: to - packages for name, to in arrows.items()}) == set()


@pytest.mark.parametrize(
    ("arrows", "circle"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set()),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, {"a", "b", "c"}),
    ],
)
def test_the_search_finds_a_circle(arrows: dict[str, set[str]], circle: set[str]) -> None:
    assert find_circle(arrows) == circle


@pytest.mark.parametrize("file", sorted(INFRA.rglob("*.py")), ids=shown)
def test_infra_names_no_route(file: Path) -> None:
    """What is special about a route is declared with it (``infra.http.routes``)."""
    docstrings = {
        id(node.value)
        for node in nodes_of(file)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes_of(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert id(node) in docstrings or not _ROUTE.match(node.value), node.value


@pytest.mark.parametrize("text", ["POST /reactions/query", "/auth/sessions", "/health"])
def test_the_search_finds_a_route(text: str) -> None:
    assert _ROUTE.match(text)
