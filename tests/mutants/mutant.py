"""A mutant: one small change of a file that breaks one rule."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from local.paths import LAYER, ROOT

# Tests of a context, and its models; they are played when the nearest tests find nothing.
CONTEXT_TESTS = {
    "reactions": ("tests/unit/reactions", "tests/integration/reactions"),
    "counters": ("tests/integration/counters", "tests/integration/follows"),
    "flash_sales": ("tests/unit/flash_sales", "tests/integration/flash_sales"),
    "infra": ("tests/unit/infra", "tests/integration/infra"),
}
CONTEXT_MODELS = {
    "reactions": ("tests/model/test_reactions_model.py",),
    "counters": ("tests/model/test_reactions_model.py",),
    "flash_sales": ("tests/model/test_flash_sales_model.py",),
    "infra": ("tests/model/test_reactions_model.py",),
}


class Mutant(NamedTuple):
    """A text of ``file`` (a path below the package ``plaza``) that occurs once, and the ``new``
    text, with which a rule is broken: ``breaks``.

    ``tests``: the paths that find it soonest. ``equivalent``: why no test can find it.
    """

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: Sequence[str]
    equivalent: str = ""

    @property
    def context(self) -> str:
        return self.file.partition("/")[0]

    def path(self, root: Path = ROOT) -> Path:
        """Return the mutated file in the checkout ``root``."""
        return root / LAYER.relative_to(ROOT) / "plaza" / self.file

    def apply(self, text: str) -> str:
        """Return the text of the file with the mutation. Raises ValueError unless ``old`` occurs
        exactly once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.file} has {self.old!r} {count} times, not once")
        return text.replace(self.old, self.new)

    def digest(self) -> str:
        """Return a hash of the mutant, its file and its nearest tests: a result is valid while it
        stays the same."""
        found = hashlib.sha256(repr(self).encode())
        for path in (self.path(), *(ROOT / test.partition("::")[0] for test in self.tests)):
            found.update(path.read_bytes())
        return found.hexdigest()[:16]


def mutants_of(file: str, tests: Sequence[str], *mutants: tuple[str, ...]) -> list[Mutant]:
    """Return the mutants (name, old, new, breaks, why it is equivalent) of ``file``. A name begins
    with that of the file."""
    stem = Path(file).name.partition(".")[0].replace("_", "-")
    prefix = f"{Path(file).parts[0].replace('_', '-')}/{stem}"
    return [
        Mutant(f"{prefix}/{name}", file, old, new, breaks, tests, *equivalent)
        for name, old, new, breaks, *equivalent in mutants
    ]
