"""The consumer of WarmUp: sales, rankings, then the hottest targets with their lists and shops.

A step works for about 20 s at a bounded rate, and sends what is left as the next step. So MySQL and
Redis serve others meanwhile, and a run ends in half a minute unless they are slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from plaza.commerce.flash_sales import recover_orders
from plaza.commerce.shops import queries as shop_queries
from plaza.core.reactions import KINDS, Kind, Target, hydration, reaction_log
from plaza.core.switches import SwitchesChanged, change_switches, level_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.operate.warm_up import redis_store
from plaza.operate.warm_up.queues import MAX_TARGETS, WARM_UPS, WarmUpStep
from plaza.social.recommendations import post_rankings, recommend

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
    match step.stage:
        case "sales":
            sales = recover_orders.prepare_sales(MAX_RUN_S)
            record("warm_up_advanced", {"sales_warmed": sales})
            WARM_UPS.send(WarmUpStep(step.run_us, "rankings"))
        case "rankings":
            post_rankings.refresh_rankings()
            hottest = reaction_log.read_hottest_targets(MAX_TARGETS)
            known = [(KINDS[kind], target) for kind, target in hottest if kind in KINDS]
            WARM_UPS.send(WarmUpStep(step.run_us, "targets", known))
        case "targets":
            left = _warm_targets(step.targets)
            if left:
                WARM_UPS.send(WarmUpStep(step.run_us, "targets", left))
            else:
                _end(step.run_us)


def _warm_targets(targets: Sequence[tuple[Kind, Target]]) -> Sequence[tuple[Kind, Target]]:
    """Load targets, and the lists and pages of the shops of reviews, at ``TARGETS_PER_S``; return
    those that are left."""
    deadline, warmed, shops = Deadline.in_s(MAX_RUN_S), 0, 0
    while warmed < len(targets) and not deadline.has_passed:
        began_s, page = clock.monotonic_s(), targets[warmed : warmed + _PAGE]
        hydration.hydrate(page, wait_s=0)
        reviews = sorted({target.id for _, target in page if target.type == "review"})
        shop_ids = recommend.rebuild_lists_of(reviews)
        if shop_ids:
            shop_queries.read_many(shop_ids)
        warmed, shops = warmed + len(page), shops + len(shop_ids)
        clock.sleep(max(0.0, len(page) / TARGETS_PER_S - (clock.monotonic_s() - began_s)))
    record("warm_up_advanced", {"targets_warmed": warmed, "shops_warmed": shops})
    return targets[warmed:]


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
