"""Likes of reviews and hourly likes of posts beside the counters and the log that they are copied
from, for the reconciliation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from plaza.core.reactions import LIKE
from plaza.infra.derived.comparisons import (
    MIN_STEPS,
    Finding,
    PartComparison,
    Repair,
    RollingComparison,
    RunPart,
    StepResult,
    Subject,
    Tally,
)
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import MAX_ID
from plaza.social.content import inspection as texts
from plaza.social.recommendations import mysql_hours, mysql_roll_up

DAYS = 8
"""Days whose hours are compared, today included: the log has all of them."""

_HOURS = "hours"  # hourly likes of a post are not the sums of the log
_REVIEW_LIKES = "review_likes"  # likes of a review that were rolled up are not its likes
_SLOT = "slot"  # the slot of a review is missing, or has outlived the review


def correct_hours(post_ids: Sequence[int]) -> int:
    """Correct the hours of posts from the log; return how many were wrong. One transaction of three
    statements and one for each day; the roll-up waits for it. Raises MysqlDown."""
    return mysql_hours.correct([_day_of(number) for number in range(DAYS)], sorted(post_ids))


def _compare_hours(part: RunPart) -> StepResult:
    """Compare the next range of a day: all of yesterday, then other days within ``MIN_STEPS``."""
    number, after_id = map(int, (part.cursor or "0:0").split(":"))
    day = _day_of(number)
    last_id = mysql_hours.find_range_end(day, after_id)
    wrong: dict[int, list[str]] = {}
    for hour in mysql_hours.find_wrong(day, after_id, last_id):
        of_day = f"{day} {hour.hour % 24:02d}h: stored {hour.net}, log {hour.counted}"
        wrong.setdefault(hour.post_id, []).append(of_day)
    if last_id == MAX_ID:
        number, last_id = number + 1, 0
    return StepResult(
        cursor=f"{number}:{last_id}",
        is_last=number == DAYS or (number > 0 and part.steps + 1 >= MIN_STEPS),
        findings=[
            Finding(_HOURS, Subject(_HOURS, "post", post_id), "; ".join(hours))
            for post_id, hours in wrong.items()
        ],
    )


def _day_of(number: int) -> date:
    """Return the day that is compared as number 0 to ``DAYS`` - 1: yesterday, whose hours change
    the least and are the newest of them, then today, then the days before."""
    age = {0: 1, 1: 0}.get(number, number)
    return datetime.fromtimestamp(clock.now_s(), UTC).date() - timedelta(days=age)


def _repair_hours(findings: Sequence[Finding]) -> int:
    correct_hours([finding.subject.id for finding in findings])
    return 0


def _compare_reviews(after_id: int) -> StepResult:
    last_id = texts.find_review_range_end(after_id)
    count, wrong = mysql_roll_up.compare_review_likes(after_id, last_id)
    slots = texts.find_wrong_slots(after_id, last_id)
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(targets=count),
        findings=[
            Finding(
                _REVIEW_LIKES,
                Subject(_REVIEW_LIKES, "review", review_id),
                f"copied {copied}, likes {likes}",
            )
            for review_id, (copied, likes) in wrong.items()
        ]
        + [
            Finding(_SLOT, Subject(_SLOT, "review", review_id), difference)
            for review_id, difference in slots.items()
        ],
    )


def _repair_review_likes(findings: Sequence[Finding]) -> int:
    mysql_roll_up.sync_review_likes(sorted({finding.subject.id for finding in findings}))
    return 0


def _repair_slots(findings: Sequence[Finding]) -> int:
    texts.repair_slots([finding.subject.id for finding in findings])
    return 0


POST_HOURS = PartComparison(
    name=_HOURS,
    execute=_compare_hours,
    begins=True,
    reasons=(_HOURS,),
    repairs=(Repair(subjects=(_HOURS,), repair=_repair_hours),),
)
REVIEWS = RollingComparison(
    name="review_likes",
    compare_range=_compare_reviews,
    estimate_left=texts.estimate_reviews,
    reasons=(_REVIEW_LIKES, _SLOT),
    repairs=(
        Repair(
            subjects=(_REVIEW_LIKES,),
            repair=_repair_review_likes,
            copied_from=(LIKE.name, "review"),
        ),
        Repair(subjects=(_SLOT,), repair=_repair_slots),
    ),
)
