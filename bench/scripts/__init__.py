"""Every Lua script at its declared limits: how long it blocks Redis.

The time is CPU of Redis' main thread, including command parsing and the reply. Each module of this
package has the cases of one context; a test fails for a script without a case.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from statistics import median

from bench.figures import Figure, Goal
from bench.harness import Harness
from bench.meters import redis_cpu_s
from bench.scripts.cases import Case
from cli.paths import LAYER, CommandError
from plaza.infra.redis import connections, redis
from plaza.infra.redis.scripts import load_script

MAX_MS = 5.0
RUNS = 7

CASES: Sequence[Case] = [
    case
    for module in pkgutil.iter_modules(__path__)
    if module.name != "cases"
    for case in importlib.import_module(f"{__name__}.{module.name}").CASES
]


def measure(harness: Harness) -> list[Figure]:
    """Return one figure a case: the median of its runs, in milliseconds of Redis."""
    idle_ms = median(_cpu_ms(lambda: None) for _ in range(RUNS))
    figures = [
        Figure(
            f"{case.script.name}: {case.name}",
            _measure(case, harness, idle_ms),
            "ms",
            goal=Goal("at most", MAX_MS),
        )
        for case in CASES
    ]
    unmeasured = find_unmeasured()
    return [
        *figures,
        Figure("scripts without a case", len(unmeasured), "scripts"),
        *(Figure(f"  {name}", 1, "script") for name in unmeasured),
    ]


def find_unmeasured() -> list[str]:
    measured = {case.script.sha for case in CASES}
    return [name for name, sha in scripts().items() if sha not in measured]


def scripts() -> dict[str, str]:
    plaza = LAYER / "plaza"
    return {
        f"{file.parent.parent.name}/{file.stem}": load_script(file).sha
        for file in sorted(plaza.rglob("*.lua"))
        if not file.name.endswith(".inc.lua")
    }


def _measure(case: Case, harness: Harness, idle_ms: float) -> float:
    harness.clear()
    case.prepare(harness)
    redis.execute("SCRIPT", "LOAD", case.script.source)
    ran_before = _count_runs()
    took_ms = median(_cpu_ms(lambda run=run: case.act(run)) for run in range(RUNS))  # type: ignore[misc]
    if _count_runs() < ran_before + RUNS:
        raise CommandError(f"{case.script.name}: {case.name} did not run a script each time")
    return max(took_ms - idle_ms, 0.0)


def _cpu_ms(act: Callable[[], object]) -> float:
    began_s = redis_cpu_s(main_thread=True)
    act()
    return (redis_cpu_s(main_thread=True) - began_s) * 1000


def _count_runs() -> int:
    stats = connections.client().info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("evalsha", "eval"))
