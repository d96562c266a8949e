"""Where things are in this checkout, and what a start can fail with."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYER = ROOT / "layers" / "common" / "python"
TEMPLATE = ROOT / "template.yaml"
ALARMS = ROOT / "alarms.json"  # which the template includes
DIRECTORY = ROOT / ".local"
TOOLS = ROOT / ".venv-tools" / "bin"
LAMBDA_PYTHON = ROOT / ".venv-lambda" / "bin" / "python"


class LocalError(Exception):
    """Something a person can mend; its text says what and how."""


def add_layer_to_path() -> None:
    """Make ``import plaza`` work from a checkout."""
    for path in (str(ROOT), str(LAYER)):
        if path not in sys.path:
            sys.path.insert(0, path)
