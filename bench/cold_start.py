"""Cold start: CPU time to import an API function, in the interpreter of the functions."""

import compileall
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bench.api import APP
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from bench.layer import build_layer
from local.paths import LAMBDA_PYTHON

RUNS = 9
SHOWN = 8
NAIVE = "boto3, redis, pymysql, aws_lambda_powertools.event_handler"
_IMPORT = """
import time
began_s = time.process_time()
import {}
print(time.process_time() - began_s)
"""
_LINE = re.compile(r"^import time: +(\d+) \| +\d+ \| +([\w.]+)", re.MULTILINE)


def measure(harness: Harness) -> list[Figure]:
    """Measure the import of the layer as ``sam build`` leaves it, and without its bytecode.

    Medians of nine, in turn, because the speed of a machine changes. All that the naive imports
    load is compiled; a function never is.
    """
    function = harness.directory / "function"
    function.mkdir(exist_ok=True)
    shutil.copy(APP, function)
    built, bare = build_layer(harness), harness.directory / "layer-without-bytecode"
    shutil.copytree(built, bare, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    compiled = harness.directory / "layer-compiled"
    shutil.copytree(built, compiled, dirs_exist_ok=True)
    compileall.compile_dir(compiled, quiet=2)
    env, bare_env, naive_env = (_environment(layer, function) for layer in (built, bare, compiled))

    naive, ours, uncompiled = _medians_ms((NAIVE, naive_env), ("app", env), ("app", bare_env))
    peer = Peer("naive imports of its libraries", naive)
    return [
        Figure("cold start, CPU of the import", ours, "ms", peer, Goal("at most", 300)),
        Figure("  without .pyc files in the layer", uncompiled, "ms", peer),
        *(Figure(f"  {package}, by -X importtime", ms, "ms") for package, ms in _split(env)),
    ]


def _environment(layer: Path, function: Path) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    paths = os.pathsep.join([str(layer), str(function)])
    return env | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


def _medians_ms(*cases: tuple[str, Mapping[str, str]]) -> list[float]:
    rounds = [[float(_run(*case).stdout) * 1000 for case in cases] for _ in range(RUNS)]
    return [statistics.median(of_case) for of_case in zip(*rounds, strict=True)]


def _split(env: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the packages with the longest own import time, in ms; Python's modules are one
    package.

    The best of nine for each module, because the clock also counts other processes' time.
    """
    best_us: dict[str, int] = {}
    for _ in range(RUNS):
        for self_us, module in _LINE.findall(_run("app", env, "-X", "importtime").stderr):
            best_us[module] = min(int(self_us), best_us.get(module, int(self_us)))
    took_us: Counter[str] = Counter()
    for module, us in best_us.items():
        package = module.partition(".")[0]
        took_us["Python itself" if package in sys.stdlib_module_names else package] += us
    return [(package, us / 1000) for package, us in took_us.most_common(SHOWN)]


def _run(modules: str, env: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    python = LAMBDA_PYTHON if LAMBDA_PYTHON.exists() else Path(sys.executable)
    return subprocess.run(
        [str(python), *options, "-c", _IMPORT.format(modules)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
