"""Paths of this checkout, and the error of local commands."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYER = ROOT / "layers" / "common" / "python"
TEMPLATE = ROOT / "template.yaml"
CONTRACT = ROOT / "functions" / "api" / "system" / "openapi.json"
ALARMS = ROOT / "alarms.json"  # included by the template
DIRECTORY = ROOT / ".local"
TOOLS = ROOT / ".venv-tools" / "bin"
RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"  # of all environments
LAMBDA_PYTHON = ROOT / ".venv-lambda" / "bin" / "python"


class CommandError(Exception):
    """An error that a person can fix; its text names the cause and the remedy."""


def add_layer_to_path() -> None:
    for path in (str(ROOT), str(LAYER)):
        if path not in sys.path:
            sys.path.insert(0, path)
