"""Reactions that benches play: from the file, then made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import dataset
from plaza.core.reactions import LIKE


def test_reactions_that_the_file_lacks_are_made_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "interactions.csv.gz"
    file.touch()
    monkeypatch.setattr(dataset, "PLAYED", file)
    monkeypatch.setattr(dataset, "_play", lambda _: iter([(LIKE, 1, 1), (LIKE, 1, 1)]))
    loaded = dataset.load_reactions(50)
    assert loaded[0] == (LIKE, 1, 1)
    assert len(set(loaded)) == len(loaded) == 50
