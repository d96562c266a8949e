"""The log lines that this process wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest


def read_log(capsys: pytest.CaptureFixture[str], event: str = "") -> list[dict[str, Any]]:
    """Return the lines since the last call, of one event if it is named."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if not event or line["event"] == event]
