"""Size of the layer, unzipped: installed packages, Plaza itself, and bytecode."""

import shutil
import subprocess
import sys
from pathlib import Path

from bench.figures import Figure, Goal
from bench.harness import Harness
from cli.paths import LAYER, CommandError
from local.stack.deployment import ARCHITECTURE

SHOWN = 4


def measure(harness: Harness) -> list[Figure]:
    layer = build_layer(harness)
    weights = sorted(((_megabytes(part), part.name) for part in layer.iterdir()), reverse=True)
    return [
        Figure("layer, unzipped", _megabytes(layer), "MB", goal=Goal("at most", 25)),
        *(Figure(f"  {name}", weight, "MB") for weight, name in weights[:SHOWN]),
    ]


def build_layer(harness: Harness) -> Path:
    """Build the layer as SAM does, once per run, for this machine. Raises CommandError."""
    layer = harness.directory / "layer" / "python"
    if layer.exists():
        return layer
    command = ["make", "--makefile", f"{ARCHITECTURE}/Makefile", "build-CommonLayer"]
    variables = [f"ARTIFACTS_DIR={layer.parent}", f"PYTHON={sys.executable}"]
    completed = subprocess.run(
        [*command, *variables], cwd=LAYER.parent, capture_output=True, text=True, check=False
    )
    if completed.returncode != 0:
        shutil.rmtree(layer, ignore_errors=True)
        raise CommandError(f"the layer could not be built:\n{completed.stderr}")
    return layer


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(f.stat().st_size for f in files if f.is_file()) / 1e6
