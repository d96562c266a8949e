"""Modules that are imported when they are first used, so that no function pays for what it may not
need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for the module ``name`` and imports it when an attribute is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
