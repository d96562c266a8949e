"""The Python of the product for the policy tests: files, imports, names."""

from __future__ import annotations

import ast
import importlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from plaza.infra.queues.queue import Queue

ROOT = Path(__file__).parents[3]
LAYER = ROOT / "layers" / "common" / "python"
PLAZA = LAYER / "plaza"
FUNCTIONS = ROOT / "functions"
CONTEXTS = sorted(
    folder.name
    for folder in PLAZA.iterdir()
    if (folder / "__init__.py").exists() and folder.name != "infra"
)


class Import(NamedTuple):
    """The parts of ``from module import name as bound``; ``name`` is '' for ``import module``."""

    module: str
    name: str
    bound: str


def tracked() -> list[Path]:
    """Every file of the repository. Skips the test outside of a clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone: the tracked files are unknown")
    completed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    files = [ROOT / name for name in completed.stdout.decode().split("\0") if name]
    return [file for file in files if file.is_file()]


def product_files() -> list[Path]:
    """Return every Python file of the layer and of the functions."""
    return sorted([*PLAZA.rglob("*.py"), *FUNCTIONS.rglob("*.py")])


@cache
def tree_of(file: Path) -> ast.Module:
    """Return the syntax tree of a file; the same object for each call."""
    return ast.parse(file.read_text())


@cache
def nodes_of(file: Path) -> Sequence[ast.AST]:
    """Return all nodes of the syntax tree of a file."""
    return tuple(ast.walk(tree_of(file)))


@cache
def imports_of(file: Path) -> list[Import]:
    """Return all imports of a file, those inside functions included."""
    return list(_imports_of(file))


def _imports_of(file: Path) -> Iterator[Import]:
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            yield from (Import(a.name, "", a.asname or a.name) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            module = node.module or ""
            yield from (Import(module, a.name, a.asname or a.name) for a in node.names)


def module_file(module: str) -> Path:
    """Return the file of ``plaza.x.y``."""
    path = LAYER.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def queue_named(file: Path, name: str) -> Queue[Any] | None:
    """Return the queue that a file imports as ``name`` or declares; None if it is not a queue."""
    modules = [imported.module for imported in imports_of(file) if imported.name == name]
    if LAYER in file.parents:
        modules.append(".".join(file.relative_to(LAYER).with_suffix("").parts))
    for module in modules:
        if module.startswith("plaza"):
            imported = getattr(importlib.import_module(module), name, None)
            if isinstance(imported, Queue):
                return imported
    return None


@cache
def names_used(file: Path, within: ast.AST) -> list[tuple[Path, ast.AST]]:
    """Return (file, definition) of each function or class of Plaza that ``within`` names."""
    tree = tree_of(file)
    imported = {i.bound: i for i in imports_of(file) if i.module.startswith("plaza")}
    results = []
    for node in ast.walk(within):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used = imported.get(node.value.id)
            if used and module_file(f"{used.module}.{used.name}").exists():
                results += _definition(module_file(f"{used.module}.{used.name}"), node.attr)
        elif isinstance(node, ast.Name) and node.id in imported:
            results += _definition(module_file(imported[node.id].module), imported[node.id].name)
        elif isinstance(node, ast.Name):
            results += [(file, d) for d in tree.body if getattr(d, "name", None) == node.id]
    return results


def definition_of(function: Callable[..., object]) -> list[tuple[Path, ast.AST]]:
    """Return (file, definition) of a function of Plaza."""
    return _definition(module_file(function.__module__), function.__name__)


def _definition(file: Path, name: str) -> list[tuple[Path, ast.AST]]:
    """Return where ``name`` is defined, through packages that re-export it."""
    for node in tree_of(file).body:
        if getattr(node, "name", None) == name:
            return [(file, node)]
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            source = module_file(node.module or "")
            if module_file(f"{node.module}.{name}").exists():
                return []  # a module, not a definition
            return _definition(source, name) if source.exists() else []
    return []
