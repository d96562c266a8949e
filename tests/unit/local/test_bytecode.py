"""The bytecode in a deployed layer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from local.paths import LAYER, ROOT


def test_modules_of_a_like_get_unchecked_bytecode(
    tmp_path: Path,
) -> None:
    plaza = tmp_path / "plaza"
    shutil.copytree(LAYER / "plaza", plaza, ignore=shutil.ignore_patterns("__pycache__"))
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", "local.stack.bytecode", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert "of bytecode" in done.stdout
    tag = sys.implementation.cache_tag
    compiled = plaza / "reactions" / "__pycache__" / f"react.{tag}.pyc"
    assert int.from_bytes(compiled.read_bytes()[4:8], "little") == 0b01, "unchecked"
    assert not (plaza / "vote_log" / "__pycache__").exists(), "no like needs it"
