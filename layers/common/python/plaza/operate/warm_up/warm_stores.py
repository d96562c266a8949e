"""The consumer of WarmUp: a stage of each context that has one, then the hottest targets.

A step works for about 20 s at a bounded rate, and sends what is left as the next step. So MySQL and
Redis serve others meanwhile, and a run ends in half a minute unless they are slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.core.reactions import KINDS, Kind, Target, hydration, reaction_log
from plaza.core.switches import SwitchesChanged, change_switches, level_of
from plaza.infra.contexts import offers
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.operate.warm_up import redis_store
from plaza.operate.warm_up.queues import MAX_TARGETS, TARGETS, WARM_UPS, WarmUpStep, list_stages

__all__ = ["WARM_UPS", "warm_stores"]

MAX_RUN_S = 20
TARGETS_PER_S = 200
_PAGE = 100
_HOLDING = "warming"


@WARM_UPS.consumer
def warm_stores(steps: Sequence[WarmUpStep]) -> None:
    """Run each step, unless another run was begun since. Safe to repeat.

    The last step lets readers go on if they are held. Raises MysqlDown, RedisDown, QueueDown: the
    step is repeated.
    """
    for step in steps:
        if redis_store.continue_run(step.run_us):
            _run(step)


def _run(step: WarmUpStep) -> None:
    stages = list_stages()
    stage = step.stage or stages[0]
    if stage != TARGETS:
        dict(offers("warm"))[stage](MAX_RUN_S)
        WARM_UPS.send(WarmUpStep(step.run_us, stages[stages.index(stage) + 1]))
    elif left := _warm_targets(step.targets):
        WARM_UPS.send(WarmUpStep(step.run_us, TARGETS, left))
    else:
        _end(step.run_us)


def _warm_targets(targets: Sequence[tuple[Kind, Target]]) -> Sequence[tuple[Kind, Target]]:
    """Load ``targets``, without any the hottest ones, and what contexts have for them, at
    ``TARGETS_PER_S``; return those that are left."""
    deadline, warmed, shops = Deadline.in_s(MAX_RUN_S), 0, 0
    targets = targets or _read_hottest()
    while warmed < len(targets) and not deadline.has_passed:
        began_s, page = clock.monotonic_s(), targets[warmed : warmed + _PAGE]
        hydration.hydrate(page, wait_s=0)
        loaded = [(target.type, target.id) for _, target in page]
        for _, load in offers("warm_targets"):
            loaded += load(loaded)
        warmed, shops = warmed + len(page), shops + len(loaded) - len(page)
        clock.sleep(max(0.0, len(page) / TARGETS_PER_S - (clock.monotonic_s() - began_s)))
    record("warm_up_advanced", {"targets_warmed": warmed, "shops_warmed": shops})
    return targets[warmed:]


def _read_hottest() -> Sequence[tuple[Kind, Target]]:
    hottest = reaction_log.read_hottest_targets(MAX_TARGETS)
    return [(KINDS[kind], target) for kind, target in hottest if kind in KINDS]


def _end(run_us: int) -> None:
    """End the run, and the level that holds readers for it."""
    newest = change_switches.read_newest()
    if level_of(newest.switches) == _HOLDING:
        with suppress(SwitchesChanged):  # an operator chose another level meanwhile
            change_switches.set_level(
                newest.version, "normal", "WarmUp has ended.", newest.changed_by
            )
    redis_store.end_run()
    took_s = round((clock.now_us() - run_us) / 1e6, 1)
    record("warm_up_ended", {"warm_up_s": took_s})
