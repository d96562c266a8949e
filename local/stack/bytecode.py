"""``python -m local.stack.bytecode [layer]``: add bytecode to the layer that ``sam build`` made.

Lambda keeps no bytecode, and compiling takes more than half of a cold start. Only the modules that
a like, its consumer and the largest API function import are compiled: other functions import most
of them too, and with all modules the layer would exceed its 25 MB. ``make build`` runs this with
the Python of the functions.
"""

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

from local.paths import ROOT
from local.stack.functions import load_function

BUILT = ROOT / ".aws-sam" / "build" / "CommonLayer" / "python"
DEPLOYED = Path("/opt/python")
COMPILED = ("api/reactions", "api/content", "queue/save_reactions")


def compile_imported(layer: Path, functions: tuple[str, ...] = COMPILED) -> int:
    """Compile the modules of ``layer`` that ``functions`` import. Returns the bytes of bytecode.

    The modules are imported from this environment if it has them, because those of the layer may be
    for another processor; bytecode is the same for all. Python never compares it with the source,
    because the upload changes the source's time. Raises ImportError, PyCompileError.
    """
    sys.path.append(str(layer))
    for function in functions:
        load_function(function)
    names = [Path(*name.split(".")) for name in list(sys.modules)]
    files = [file for n in names for file in (n.with_suffix(".py"), n / "__init__.py")]
    return sum(_compile(layer, file) for file in files if (layer / file).exists())


def _compile(layer: Path, file: Path) -> int:
    compiled = cache_from_source(str(layer / file))
    py_compile.compile(
        str(layer / file),
        compiled,
        dfile=str(DEPLOYED / file),  # for traces, and so that all builds have the same bytes
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    return Path(compiled).stat().st_size


if __name__ == "__main__":
    built = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else BUILT
    print(f"{compile_imported(built) / 1e6:.1f} MB of bytecode in the layer")
