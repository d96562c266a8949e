"""A mutant: one small change of a file that breaks one rule."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cli.paths import LAYER, ROOT

# Tests of a context beside its own folders, and its models; they are played when the nearest tests
# find nothing.
CONTEXT_TESTS = {
    "cli": ("tests/unit/ops", "tests/integration/ops"),
    "core/counters": ("tests/integration/people/follows",),
}
CONTEXT_MODELS = {
    "operate/accounts": (),
    "commerce/checkins": ("tests/model/test_checkins_model.py",),
    "cli": (),
    "social/content": (),
    "social/shop_scores": (),
    "ops": (),
    "core/targets": (),
    "people/users": (),
    "core/reactions": ("tests/model/test_reactions_model.py",),
    "core/counters": ("tests/model/test_reactions_model.py",),
    "commerce/flash_sales": ("tests/model/test_flash_sales_model.py",),
    "infra": ("tests/model/test_reactions_model.py",),
    "people/auth": (),
}


COMMANDS = ("cli", "ops")  # folders of command lines, beside the package


class Mutant(NamedTuple):
    """A text of ``file`` (a path below the package ``plaza``, or one of ``COMMANDS``) that occurs
    once, and the ``new`` text, with which a rule is broken: ``breaks``.

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
        """The folder of its tests: a command, ``infra``, or a context as ``wing/context``."""
        first, *parts = self.file.split("/")
        return first if first in (*COMMANDS, "infra") else f"{first}/{parts[0]}"

    def list_stages(self) -> dict[str, Sequence[str]]:
        """Return the tests to play, in stages: the nearest, the context's, its model."""
        folders = (f"tests/{kind}/{self.context}" for kind in ("unit", "integration"))
        context = [folder for folder in folders if (ROOT / folder).is_dir()]
        stages: dict[str, Sequence[str]] = {
            "nearest": self.tests,
            "context": [*context, *CONTEXT_TESTS.get(self.context, ())],
            "model": CONTEXT_MODELS.get(self.context, ()),
        }
        return {stage: tests for stage, tests in stages.items() if tests}

    def path(self, root: Path = ROOT) -> Path:
        """Return the mutated file in the checkout ``root``."""
        if self.context in COMMANDS:
            return root / self.file
        return root / LAYER.relative_to(ROOT) / "plaza" / self.file

    def apply(self, text: str) -> str:
        """Return the text of the file with the mutation. Raises ValueError unless ``old`` occurs
        exactly once."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.file} has {self.old!r} {count} times, not once")
        return text.replace(self.old, self.new)

    def digest(self, killer: str) -> str:
        """Return a hash of the change, its file, and the test that killed the mutant, or without
        one its nearest tests: a verdict is valid while it stays the same."""
        result = hashlib.sha256(repr((self.old, self.new, self.equivalent)).encode())
        result.update(self.path().read_bytes())
        for test in [killer] if killer else self.tests:
            result.update(_read_test(test))
        return result.hexdigest()[:16]


def has_test(name: str) -> bool:
    """Return whether a test still exists."""
    file, _, test = name.partition("::")
    path = ROOT / file
    return path.is_file() and (
        not test or test.partition("[")[0] in _functions_of(path.read_text())
    )


def _read_test(name: str) -> bytes:
    """Return the source of a test, or of a file of tests; nothing of one that does not exist."""
    file, _, test = name.partition("::")
    if not (ROOT / file).is_file():
        return b""
    text = (ROOT / file).read_text()
    return _functions_of(text).get(test.partition("[")[0], text).encode()


@cache
def _functions_of(text: str) -> dict[str, str]:
    """Return the name -> source of the functions of a module."""
    return {
        node.name: ast.unparse(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }
