"""The Python of the product for the policy tests: files, imports, names."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.template.code import imports_of as imports_of
from tools.template.code import module_file as module_file
from tools.template.code import nodes_of as nodes_of
from tools.template.code import queue_named as queue_named
from tools.template.code import tree_of as tree_of

ROOT = Path(__file__).parents[3]
LAYER = ROOT / "layers" / "common" / "python"
PLAZA = LAYER / "plaza"
FUNCTIONS = ROOT / "functions"
WINGS = sorted(
    file.parent.name for file in PLAZA.glob("*/__init__.py") if file.parent.name != "infra"
)
CONTEXTS = sorted(
    f"{wing}/{file.parent.name}" for wing in WINGS for file in PLAZA.glob(f"{wing}/*/__init__.py")
)
"""As ``wing/context``."""


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
