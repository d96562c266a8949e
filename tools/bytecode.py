"""``python -m tools bytecode``: list the modules of packages whose bytecode the layer has.

Only those that a like, its consumer and the largest API function import are listed, and those that
they import with their first connection to MySQL: other functions import most of them too, and with
all modules the layer would exceed its 22 MB. ``sam build`` compiles them and Plaza
(layers/common/layer.mk) without importing them, so that the layer can be for another processor.
"""

import argparse
import re
import sys
from importlib import import_module
from importlib.metadata import files
from pathlib import Path

from cli.paths import LAYER
from local.stack.functions import load_function

COMPILED = LAYER.parent / "compiled.txt"
IMPORTING = ("api/reactions", "queue/save_reactions", "api/recommendations")


def list_imported(functions: tuple[str, ...] = IMPORTING) -> list[str]:
    """Return the files of packages that ``functions`` import, sorted. Raises ImportError.

    For a new process: modules that it imported before count as imported.
    """
    for function in functions:
        load_function(function)
    import_module("plaza.infra.mysql.driver")
    names = [Path(*name.split(".")) for name in list(sys.modules)]
    imported = {file for name in names for file in (name.with_suffix(".py"), name / "__init__.py")}
    packages = re.findall(r"^([\w-]+)==", (LAYER / "requirements.txt").read_text(), re.MULTILINE)
    installed = {Path(file) for package in packages for file in files(package) or ()}
    return sorted(map(str, imported & installed))


def main(args: argparse.Namespace) -> None:
    listed = list_imported()
    COMPILED.write_text("\n".join(listed) + "\n")
    print(f"{len(listed)} modules in {COMPILED.name}")
