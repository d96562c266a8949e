"""Every Lua script at its declared limits: how long it keeps Redis from everything else.

The time is Redis' own (SLOWLOG), without network and Python. A context adds its cases in a module of
this package; a script without one is listed by ``find_unmeasured``, and its policy test fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.figures import Figure, Goal
from bench.scripts import infra, rankings, recommendations, shops, targets
from bench.scripts.cases import Case
from bench.stage import Stage
from local.paths import LAYER, LocalError
from plaza.infra import redis
from plaza.infra.lua import load_script

MAX_MS = 5.0
RUNS = 7
_SLOWLOG_LENGTH = 2_000

CASES: Sequence[Case] = [
    *shops.CASES,
    *rankings.CASES,
    *recommendations.CASES,
    *targets.CASES,
    *infra.CASES,
]


def measure(stage: Stage) -> list[Figure]:
    """One figure a case: the median of its runs, in milliseconds of Redis."""
    redis.execute("CONFIG", "SET", "slowlog-log-slower-than", 0)
    redis.execute("CONFIG", "SET", "slowlog-max-len", _SLOWLOG_LENGTH)
    figures = [
        Figure(
            f"{case.script.name}: {case.name}",
            _measure(case, stage),
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
    """Returns the scripts that no case measures, as ``context/name``."""
    measured = {case.script.sha for case in CASES}
    return [name for name, sha in scripts().items() if sha not in measured]


def scripts() -> dict[str, str]:
    """Returns the SHA-1 of every script of the product by its ``context/name``."""
    plaza = LAYER / "plaza"
    return {
        f"{file.relative_to(plaza).parts[0]}/{file.stem}": load_script(file).sha
        for file in sorted(plaza.rglob("*.lua"))
        if not file.name.endswith(".inc.lua")
    }


def _measure(case: Case, stage: Stage) -> float:
    stage.clear()
    case.prepare(stage)
    redis.execute("SCRIPT", "LOAD", case.script.source)
    return median(_longest_ms(case, run) for run in range(RUNS))


def _longest_ms(case: Case, run: int) -> float:
    redis.execute("SLOWLOG", "RESET")
    case.act(run)
    entries = redis.execute("SLOWLOG", "GET", _SLOWLOG_LENGTH)
    took_us = [
        duration_us
        for _, _, duration_us, command, *_ in entries
        if command[:2] == ["EVALSHA", case.script.sha]
    ]
    if not took_us:
        raise LocalError(f"{case.script.name}: {case.name} did not run the script")
    return max(took_us) / 1000
