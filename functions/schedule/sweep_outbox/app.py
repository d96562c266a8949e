"""What the queue never got is published again, every minute; what Redis lost is settled again."""

from plaza.checkins.sweeping import sweep_checkins
from plaza.infra import clock
from plaza.infra.rounds import run_in_turn
from plaza.reactions.failovers import settle_after_failover
from plaza.reactions.sweeping import sweep_outbox


def handler(event: object, context: object) -> dict[str, int]:
    """Sweep the outboxes once."""
    return run_in_turn(
        {
            "republished": sweep_outbox,
            "checkins_republished": sweep_checkins,
            "settled_again": settle_after_failover,
        },
        turn=int(clock.now_s() // 60),
    )
