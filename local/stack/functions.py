"""The functions of the template in this process: their modules, all of which are called app."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

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
