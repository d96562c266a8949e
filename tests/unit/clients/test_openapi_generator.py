"""The Python client of OpenAPI Generator: its command in docs/clients.md, and what it reads."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from cli.paths import CONTRACT, ROOT, TOOLS

GENERATOR = TOOLS / "openapi-generator-cli"


@pytest.mark.deep
def test_the_python_client_is_generated_as_documented_and_reads_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documented = (ROOT / "docs" / "clients.md").read_text()
    [command] = re.findall(r"^openapi-generator-cli (.* -g python .*)$", documented, re.MULTILINE)
    argv = shlex.split(command.replace("plaza-python", str(tmp_path)))
    completed = subprocess.run(
        [GENERATOR, *argv], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert completed.returncode == 0, completed.stderr
    monkeypatch.syspath_prepend(tmp_path)
    client = importlib.import_module("openapi_client")
    schemas = json.loads(CONTRACT.read_text())["components"]["schemas"]
    for name, schema in schemas.items():
        for example in schema.get("examples", ()):
            assert getattr(client, name).from_dict(example).to_dict().keys() >= example.keys()
