"""Cold start: CPU of the first request of a fresh process, in the interpreter of the functions.

The process has what a deployed function has: the layer as ``sam build`` leaves it, and logins for
Redis and MySQL that it reads from Secrets Manager.
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pymysql

from bench.api import like_event, post_event
from bench.figures import Figure, Goal, Peer
from bench.first_request import import_path, run_first_request, with_logins
from bench.harness import Harness
from bench.layer import build_layer
from cli.paths import LAMBDA_PYTHON, ROOT, CommandError
from local.stack.functions import make_record
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.redis import redis
from plaza.people.auth import new_session

RUNS = 9
SHOWN = 8
USER, POST = 7, 11
NAIVE = "boto3, redis, pymysql, aws_lambda_powertools, aws_lambda_powertools.event_handler"
_IMPORT = """
import time
began_s = time.process_time()
import {}
print(time.process_time() - began_s)
"""
_LINE = re.compile(r"^import time: +(\d+) \| +\d+ \| +([\w.]+)", re.MULTILINE)


class _Case(NamedTuple):
    """A function and the event of its first request; the goal for its CPU."""

    name: str
    folder: str
    event: Mapping[str, Any]
    max_ms: int


def measure(harness: Harness) -> list[Figure]:
    """Measure one function of each kind, and what its libraries cost, imported naively.

    Medians of nine, in turn, because the speed of a machine changes. The naive imports load whole,
    compiled packages: the layer leaves modules out that only a plain ``import redis`` loads.
    """
    built, bare = build_layer(harness), harness.directory / "layer-without-bytecode"
    shutil.copytree(built, bare, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    installed = Path(pymysql.__file__).parents[1]
    cases = _prepare(harness)
    like = cases[0]
    rounds = [
        [
            _naive_ms(_environment(harness, installed)),
            _request(harness, bare, like)[1],
            *(ms for case in cases for ms in _request(harness, built, case)),
        ]
        for _ in range(RUNS)
    ]
    naive, uncompiled, *measured = [statistics.median(of) for of in zip(*rounds, strict=True)]
    peer = Peer("naive imports of its libraries", naive)
    figures = []
    for case, import_ms, ms in zip(cases, measured[::2], measured[1::2], strict=True):
        goal = Goal("at most", case.max_ms)
        figures.append(Figure(f"first request, CPU, {case.name}", ms, "ms", peer, goal))
        figures.append(Figure("  of that its import", import_ms, "ms"))
    figures.append(Figure("  a like, without .pyc files in the layer", uncompiled, "ms", peer))
    env = _environment(harness, built, like.folder)
    return figures + [
        Figure(f"  a like, {package}, by -X importtime", ms, "ms") for package, ms in _split(env)
    ]


def _prepare(harness: Harness) -> list[_Case]:
    """Store what the requests need; return one function of each kind."""
    harness.clear()
    harness.add_posts([POST])
    harness.add_users([USER])
    redis.execute("FLUSHALL")
    [token] = new_session.open_sessions([USER])
    header = {"authorization": f"Bearer {token}"}
    like, post = (
        event | {"headers": event["headers"] | header}
        for event in (like_event(POST, USER), post_event(POST, USER))
    )
    message = ReactionEvent(ReactionKey("post", POST, "like", USER), True, time.time_ns() // 1_000)
    batch = {"Records": [make_record(1, REACTIONS.encode(message), time.time_ns() // 1_000_000)]}
    return [
        _Case("a like", "api/reactions", like, 150),
        _Case("a post", "api/content", post, 200),
        _Case("a batch of reactions", "queue/save_reactions", batch, 150),
        _Case("a sweep", "schedule/sweep_outbox", {}, 150),
    ]


def _request(harness: Harness, layer: Path, case: _Case) -> tuple[float, float]:
    """Return the CPU in ms of a function's import, and of its first request with its import."""
    env = _environment(harness, layer, case.folder)
    first = run_first_request(_python(), env, case.event)
    if first.answer.get("statusCode", 200) != 200 or first.answer.get("batchItemFailures"):
        raise CommandError(f"{case.folder} returned {first.answer}")
    return first.import_ms, first.ms


def _environment(harness: Harness, layer: Path, folder: str | None = None) -> dict[str, str]:
    aws_url = os.environ["AWS_ENDPOINT_URL"]
    env = with_logins(os.environ, harness.redis_url, harness.mysql_url, aws_url)
    functions = [ROOT / "functions" / folder] if folder else []
    return env | import_path(layer, *functions)


def _naive_ms(env: Mapping[str, str]) -> float:
    return float(_run(NAIVE, env).stdout) * 1000


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
    return subprocess.run(
        [str(_python()), *options, "-c", _IMPORT.format(modules)],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )


def _python() -> Path:
    return LAMBDA_PYTHON if LAMBDA_PYTHON.exists() else Path(sys.executable)
