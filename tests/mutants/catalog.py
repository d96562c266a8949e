"""All mutants, from the folder ``changes``: a file of changes for each file of the package.

    @@ total-before: A commit has the total after it.
    -total + change.delta,
    +total,

A mutant begins with its name and the rule that it breaks. Its old text follows after ``-`` and its
new text after ``+``, to the letter; without ``+`` the old text is removed. A line after ``=`` says
why no test can find it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.mutants.mutant import COMMANDS, Mutant
from tests.mutants.nearest import OF_FILES, OF_MUTANTS

CHANGES = Path(__file__).parent / "changes"


@cache
def load_mutants() -> tuple[Mutant, ...]:
    """Return all mutants in the order of their names."""
    mutants = [
        parse(path.relative_to(CHANGES).with_suffix(""), text)
        for path in CHANGES.rglob("*.diff")
        for text in re.split("^@@ ", path.read_text(), flags=re.MULTILINE)[1:]
    ]
    return tuple(sorted(mutants, key=lambda mutant: mutant.name))


def parse(file: Path, text: str) -> Mutant:
    """Return the mutant of ``file`` that a text describes. Its name begins with the file's."""
    title, *lines = text.removesuffix("\n").split("\n")
    short_name, _, breaks = title.partition(": ")
    stem = file.name.partition(".")[0]
    folder = file.parts[0] if file.parts[0] in (*COMMANDS, "infra") else file.parts[1]
    name = f"{folder}/{stem}".replace("_", "-") + f"/{short_name}"
    old, new, equivalent = (
        "\n".join(line[1:] for line in lines if line.startswith(mark)) for mark in "-+="
    )
    tests = OF_MUTANTS.get(name) or OF_FILES[str(file)]
    return Mutant(name, str(file), old, new, breaks, tests, equivalent.strip())
