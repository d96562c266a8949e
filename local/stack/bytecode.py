"""``python -m local.stack.bytecode [layer]``: add bytecode to the layer that ``sam build`` made.

Lambda keeps no bytecode, and compiling takes more than half of a cold start. Only the modules that
a like imports are compiled: other functions import most of them too, and with all of them the layer
would exceed its 25 MB. ``make build`` runs this with the interpreter of the functions.
"""

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

from local.paths import ROOT
from local.stack.functions import load_function

BUILT = ROOT / ".aws-sam" / "build" / "CommonLayer" / "python"
LIKE_PATH = ("api/reactions", "queue/save_reactions")


def compile_imported(layer: Path, functions: tuple[str, ...] = LIKE_PATH) -> int:
    """Compile the modules of ``layer`` that ``functions`` import. Returns the bytes of bytecode.

    Python never compares it with the source, because the upload changes the source's time. Raises
    ImportError, PyCompileError.
    """
    sys.path.insert(0, str(layer))
    for function in functions:
        load_function(function)
    files = {Path(str(getattr(module, "__file__", ""))) for module in sys.modules.values()}
    return sum(
        _compile(file) for file in files if file.suffix == ".py" and file.is_relative_to(layer)
    )


def _compile(file: Path) -> int:
    compiled = cache_from_source(str(file))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(file), compiled, doraise=True, invalidation_mode=mode)
    return Path(compiled).stat().st_size


if __name__ == "__main__":
    built = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else BUILT
    print(f"{compile_imported(built) / 1e6:.1f} MB of bytecode in the layer")
