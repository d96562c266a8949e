"""``python -m local.stack.bytecode [layer]``: put bytecode into the layer that ``sam build`` made.

Lambda keeps none, and compiling costs more than half of a cold start. What the functions on the way
of a like import gets its own: that is most of what any function does, and with everything compiled
the layer would be over its 25 MB. Run by the interpreter that the functions get (``make build``).
"""

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

from local.paths import ROOT
from local.stack.functions import load_function

BUILT = ROOT / ".aws-sam" / "build" / "CommonLayer" / "python"
ON_THE_WAY = ("api/authorizer", "api/reactions", "queue/save_reactions")


def compile_imported(layer: Path, functions: tuple[str, ...] = ON_THE_WAY) -> int:
    """Compile those modules of ``layer`` that ``functions`` import; how many bytes that makes.

    Nobody will compare it with its source, whose time the upload changes. Raises ImportError,
    PyCompileError.
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
