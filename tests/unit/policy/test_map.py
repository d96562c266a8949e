"""The map leads somewhere: each file that it names exists, and it names all wings and contexts."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.policy.modules import CONTEXTS, FUNCTIONS, PLAZA, ROOT, WINGS
from tests.unit.policy.test_wings import MAY_KNOW

MAP = ROOT / "docs" / "map.md"
MAX_LINES = 100
FILE = re.compile(r"`([\w./*-]*(?:/|\.(?:py|lua|md|yaml|sql|jsonl)))`|`(Makefile)`")
KINDS = {
    "api": r"(\d+) APIs",
    "queue": r"(\d+) consumers",
    "schedule": r"(\d+) schedules",
    "ops": r"(\d+) operator functions",
}


def row_of(wing: str) -> list[str]:
    """Return the cells of a wing: contexts, the wings that it knows, the file to read first."""
    [row] = re.findall(rf"^\| {wing} \| (.*) \|$", MAP.read_text(), re.MULTILINE)
    return re.split(r" *\| *", row)


def test_the_map_is_one_page() -> None:
    assert len(MAP.read_text().splitlines()) <= MAX_LINES


def test_every_file_that_the_map_names_exists() -> None:
    """A bare name is in the folder of the path before it, or beside that folder."""
    missing, folder = [], Path()
    for name in (file or other for file, other in FILE.findall(MAP.read_text())):
        paths = [path for base in (ROOT, PLAZA) for path in base.glob(name)]
        if paths and "/" in name and not name.startswith("*"):
            folder = paths[0] if name.endswith("/") else paths[0].parent
        if not paths and not (folder / name).exists() and not (folder.parent / name).exists():
            missing.append(name)
    assert missing == []


def test_the_map_has_every_wing_with_its_contexts() -> None:
    for wing in WINGS:
        contexts, known, first = row_of(wing)
        names = contexts.partition(":")[0].split(", ")
        assert sorted(f"{wing}/{name}" for name in names) == [
            context for context in CONTEXTS if context.startswith(f"{wing}/")
        ]
        assert {word for word in known.split(", ") if word.strip()} == MAY_KNOW[wing]
        assert first.strip("`").startswith(f"{wing}/")


def test_the_map_counts_the_functions() -> None:
    for kind, pattern in KINDS.items():
        [stated] = re.findall(pattern, MAP.read_text())
        assert int(stated) == len(list((FUNCTIONS / kind).glob("*/app.py")))
