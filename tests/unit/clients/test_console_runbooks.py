"""The runbooks that the console links to."""

from __future__ import annotations

import re

import yaml

from cli.paths import ROOT
from tests.support.node import WEB

CONSOLE = WEB / "console" / "src"


def test_each_runbook_that_the_console_names_exists() -> None:
    texts = "".join(file.read_text() for file in CONSOLE.rglob("*.tsx"))
    named = set(re.findall(r'(?:runbook=|<Runbook name=)"([a-z-]+)"', texts))
    named |= set(read_own().values())
    assert "outbox" in named
    assert named <= {file.stem for file in (ROOT / "docs" / "runbooks").glob("*.md")}


def test_dead_letters_lead_to_the_runbook_of_the_alarm() -> None:
    queues = yaml.safe_load((ROOT / "alarms.yaml").read_text())["queues"]
    own = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().removesuffix("_queue"): of["runbook"]
        for name, of in queues.items()
        if "runbook" in of
    }
    assert read_own() == own


def read_own() -> dict[str, str]:
    """Return queue -> the runbook that the console has for its dead letters."""
    text = (CONSOLE / "runbooks.tsx").read_text()
    table = text[text.index("OF_QUEUE") : text.index("};")]
    return dict(re.findall(r'(\w+): "([a-z-]+)"', table))
