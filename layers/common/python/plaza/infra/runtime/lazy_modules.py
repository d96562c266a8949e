"""Modules that are imported when they are first used, so that no function pays for what it may not
need."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class LazyModule:
    """Stands for the module ``name`` and imports it when an attribute is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


class _DeferredPackage(ModuleType):
    """Stands for a package until an attribute is read; its submodules can be imported before."""

    main = ""

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if find_spec(submodule := f"{self.__name__}.{attribute}"):
            return import_module(submodule)
        if self.main and hasattr(main := import_module(f"{self.__name__}.{self.main}"), attribute):
            return getattr(main, attribute)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), attribute)


def defer_package(name: str, main: str = "") -> None:
    """Let imports of the package ``name``, of a top-level one, succeed without running it until
    something of it is used that is not in its submodule ``main``. Has no effect if the package is
    imported already."""
    top, *path = name.split(".")
    spec = find_spec(top)
    if name not in sys.modules and spec and spec.submodule_search_locations:
        package = _DeferredPackage(name)
        package.main = main
        package.__path__ = ["/".join([spec.submodule_search_locations[0], *path])]
        sys.modules[name] = package
        if parent := sys.modules.get(name.rpartition(".")[0]):
            setattr(parent, path[-1], package)
