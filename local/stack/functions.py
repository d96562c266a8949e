"""The functions of the template in this process: their modules, all of which are called app."""

import os
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from local.paths import ROOT


def load_function(folder: str) -> ModuleType:
    """The module of a function (``api/shops``), freshly imported. Raises ImportError."""
    name = "function_" + folder.replace("/", "_")
    spec = spec_from_file_location(name, ROOT / "functions" / folder / "app.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} can't be loaded")
    module = sys.modules[name] = module_from_spec(spec)  # pydantic looks the models' module up
    spec.loader.exec_module(module)
    return module


def become_function(environment: Mapping[str, str]) -> None:
    """Give a new process the settings of a function; what it logs goes nowhere."""
    os.environ.update(environment)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - to the end of the process


def make_record(number: int, body: str, sent_ms: int) -> dict[str, Any]:
    """A message as Lambda hands it to a consumer, received for the first time."""
    return {
        "messageId": str(number),
        "receiptHandle": str(number),
        "body": body,
        "attributes": {"SentTimestamp": str(sent_ms), "ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }
