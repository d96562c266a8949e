"""What a test replaces is looked up where it replaces it.

``from module import name`` binds the function: a test that replaces ``module.name`` afterwards
replaces nothing, and passes whatever the product does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.unit.policy.modules import LAYER, ROOT, imports_of, module_file, tracked

_PATCH = re.compile(r"\bsetattr\(\s*(\w+),\s*\"(\w+)\"")
_ATTRIBUTE = re.compile(r"\b(\w+)\.(\w+)\b")


@cache
def texts() -> dict[Path, str]:
    """Return the text of each tracked Python file that tests play."""
    files = [file for file in tracked() if file.suffix == ".py"]
    return {file: file.read_text() for file in files if "bench" not in file.parts}


@cache
def users() -> dict[tuple[str, str], set[Path]]:
    """Return (name of a module, attribute) -> the files that use it so."""
    results = defaultdict(set)
    for file, text in texts().items():
        for use in set(_ATTRIBUTE.findall(text)):
            results[use].add(file)
    return results


def modules_of(test: Path) -> dict[str, Path]:
    """Return name -> file of the modules of the layer that a test imports."""
    files = {
        imported.bound: module_file(f"{imported.module}.{imported.name}")
        for imported in imports_of(test)
    }
    return {name: file for name, file in files.items() if file in texts()}


def is_looked_up(module: Path, name: str, test: Path) -> bool:
    """Return whether the module uses ``name`` itself, or another file does by the module's name."""
    uses = re.findall(rf"\b{name}\b", texts()[module])
    return len(uses) > 1 or bool(users()[module.stem, name] - {test})


def find_patches() -> list[tuple[Path, Path, str]]:
    """Return (test, module, name) of each replaced name of a module of the layer."""
    patches = []
    for test, text in texts().items():
        if test.is_relative_to(ROOT / "tests") and (replaced := _PATCH.findall(text)):
            modules = modules_of(test)
            names = {(modules[m], name) for m, name in replaced if m in modules}
            patches += [(test, module, name) for module, name in names]
    return patches


def test_a_replaced_name_is_looked_up_in_its_module() -> None:
    patches = find_patches()
    assert len(patches) > 100
    assert [
        f"{test.relative_to(ROOT)}: {module.stem}.{name} is imported by name"
        for test, module, name in patches
        if not is_looked_up(module, name, test)
    ] == []


def test_a_function_that_is_imported_by_name_is_found() -> None:
    module = LAYER / "plaza" / "core" / "reactions" / "mysql_rows.py"
    test = ROOT / "tests" / "integration" / "core" / "reactions" / "test_hydrate.py"
    assert not is_looked_up(module, "read_rows", test)
    assert is_looked_up(module, "read_state", test)
