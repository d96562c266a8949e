"""Size of the layer, unzipped: installed packages, Plaza itself, and bytecode."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.figures import Figure, Goal
from bench.harness import Harness
from local.paths import LAMBDA_PYTHON, LAYER, ROOT, LocalError

SHOWN = 4


def measure(harness: Harness) -> list[Figure]:
    layer = compile_layer(build_layer(harness))
    weights = sorted(((_megabytes(part), part.name) for part in layer.iterdir()), reverse=True)
    return [
        Figure("layer, unzipped", _megabytes(layer), "MB", goal=Goal("at most", 25)),
        *(Figure(f"  {name}", weight, "MB") for weight, name in weights[:SHOWN]),
    ]


def build_layer(harness: Harness) -> Path:
    """Build the layer as SAM does, once per run. Raises LocalError."""
    layer = harness.directory / "layer"
    if layer.exists():
        return layer
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    requirements = ["--requirement", str(LAYER / "requirements.txt")]
    done = subprocess.run(
        [*pip, "--no-compile", "--no-deps", "--target", str(layer), *requirements],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(layer, ignore_errors=True)
        raise LocalError(f"the layer's requirements could not be installed:\n{done.stderr}")
    leave_out = shutil.ignore_patterns("__pycache__")
    shutil.copytree(LAYER / "plaza", layer / "plaza", ignore=leave_out)
    return layer


def compile_layer(layer: Path) -> Path:
    """Add the bytecode that ``make build`` adds to ``layer``. Raises LocalError."""
    python = LAMBDA_PYTHON if LAMBDA_PYTHON.exists() else Path(sys.executable)
    done = subprocess.run(
        [str(python), "-m", "local.stack.bytecode", str(layer)],
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise LocalError(f"the layer could not be compiled:\n{done.stderr}")
    return layer


def _megabytes(path: Path) -> float:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(f.stat().st_size for f in files if f.is_file()) / 1e6
