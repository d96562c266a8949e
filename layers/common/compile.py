"""``python compile.py compiled.txt LAYER``: add bytecode of Plaza and of the listed modules.

Lambda keeps no bytecode, and compiling takes more than half of a cold start. Python never compares
this bytecode with the source, because the upload changes the source's time.
"""

import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

DEPLOYED = Path("/opt/python")


def compile_modules(files: list[str], layer: Path) -> int:
    """Compile ``files`` of ``layer``. Returns the bytes of bytecode. Raises PyCompileError,
    OSError."""
    size_bytes = 0
    for file in files:
        compiled = cache_from_source(str(layer / file))
        py_compile.compile(
            str(layer / file),
            compiled,
            dfile=str(DEPLOYED / file),  # for traces, and so that all builds have the same bytes
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        size_bytes += Path(compiled).stat().st_size
    return size_bytes


if __name__ == "__main__":
    listed, target = Path(sys.argv[1]).read_text().split(), Path(sys.argv[2])
    plaza = [str(file.relative_to(target)) for file in (target / "plaza").rglob("*.py")]
    total_bytes = compile_modules(listed + plaza, target)
    print(f"{total_bytes / 1e6:.1f} MB of bytecode in the layer")
