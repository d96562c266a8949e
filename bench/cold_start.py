"""Cold start: CPU time to import an API function, in the interpreter of the functions."""

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

RUNS = 5
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

    Medians of five. boto3 is always compiled, because it is part of the runtime; a function never
    is.
    """
    function = harness.directory / "function"
    function.mkdir(exist_ok=True)
    shutil.copy(APP, function)
    built, bare = build_layer(harness), harness.directory / "layer-without-bytecode"
    shutil.copytree(built, bare, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    env, bare_env = (_environment(layer, function) for layer in (built, bare))

    naive, compiled = _median_ms(NAIVE, env), _median_ms("app", env)
    peer = Peer("naive imports of its libraries", naive)
    return [
        Figure("cold start, CPU of the import", compiled, "ms", peer, Goal("at most", 300)),
        Figure("  without .pyc files in the layer", _median_ms("app", bare_env), "ms", peer),
        *(Figure(f"  {package}, by -X importtime", ms, "ms") for package, ms in _split(env)),
    ]


def _environment(layer: Path, function: Path) -> dict[str, str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    paths = os.pathsep.join([str(layer), str(function)])
    return env | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}


def _median_ms(modules: str, env: Mapping[str, str]) -> float:
    return statistics.median(float(_run(modules, env).stdout) * 1000 for _ in range(RUNS))


def _split(env: Mapping[str, str]) -> list[tuple[str, float]]:
    """Return the packages with the longest own import time, in ms; Python's modules are one
    package.

    The best of five for each module, because the clock also counts other processes' time.
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
