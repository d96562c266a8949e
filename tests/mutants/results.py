"""Verdicts of earlier runs, in a file, so that a run continues where the one before ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cli.paths import DIRECTORY
from tests.mutants.job import BROKEN, KILLED, TIMEOUT, Verdict
from tests.mutants.mutant import Mutant, has_test

FILE = DIRECTORY / "mutants.json"


class Results:
    """Name of a mutant -> its verdict, and the digest for which it is valid."""

    def __init__(self, file: Path = FILE) -> None:
        self.file = file
        self._found: dict[str, dict[str, object]] = {}
        if file.exists():
            self._found = json.loads(file.read_text())

    def verdict_of(self, mutant: Mutant) -> Verdict | None:
        """Return the verdict, None when the mutant, its file or its tests have changed since, and
        when a test was broken."""
        result = self._found.get(mutant.name)
        if (
            result is None
            or result["outcome"] == BROKEN
            or result["digest"] != mutant.digest(self.killer_of(mutant))
        ):
            return None
        return _parse(result)

    def killer_of(self, mutant: Mutant) -> str:
        """Return the test that killed the mutant in its last run, '' if none did, or if it does not
        exist any more."""
        result = self._found.get(mutant.name)
        verdict = _parse(result) if result else None
        is_valid = verdict and verdict.outcome in (KILLED, TIMEOUT) and has_test(verdict.test)
        return verdict.test if verdict and is_valid else ""

    def put(self, mutant: Mutant, verdict: Verdict) -> None:
        """Store a verdict."""
        self._found[mutant.name] = verdict._asdict()
        self._found[mutant.name]["digest"] = mutant.digest(self.killer_of(mutant))
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self._found, indent=1, sort_keys=True) + "\n")
        new.replace(self.file)


def _parse(result: Mapping[str, object]) -> Verdict:
    return Verdict(**{name: value for name, value in result.items() if name != "digest"})  # type: ignore[arg-type]
