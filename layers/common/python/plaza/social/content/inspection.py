"""Counters of shops beside their reviews, and slots of reviews, for the reconciliation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plaza.infra.derived.comparisons import (
    COUNTER,
    Finding,
    Repair,
    RollingComparison,
    StepResult,
    Tally,
    compare_counts,
)
from plaza.infra.mysql import mysql
from plaza.infra.mysql.id_ranges import estimate_left
from plaza.infra.runtime.codec import MAX_ID
from plaza.social.content import mysql_counted
from plaza.social.content.mysql_counted import estimate_reviews, find_review_range_end
from plaza.social.content.mysql_review_slots import find_wrong as find_wrong_slots
from plaza.social.content.mysql_review_slots import repair as repair_slots
from plaza.social.shop_scores import totals

__all__ = [
    "SHOP_REVIEWS",
    "estimate_reviews",
    "find_review_range_end",
    "find_wrong_slots",
    "repair_slots",
]


def _compare_shops(after_id: int) -> StepResult:
    last_id = mysql_counted.find_shop_range_end(after_id)
    counted = mysql_counted.count_shops(after_id, last_id)
    return StepResult(
        cursor=str(last_id),
        is_last=last_id == MAX_ID,
        tally=Tally(targets=counted.subjects),
        findings=compare_counts("shop", counted.counters, counted.rows),
    )


def _repair_shops(findings: Sequence[Finding]) -> int:
    """Correct the counters of shops that are wrong; return how many. One transaction of three
    statements, one round trip."""
    shop_ids = sorted({finding.subject.id for finding in findings})
    corrected = mysql.run_in_transaction(lambda cursor: totals.correct(cursor, shop_ids))
    totals.drop(shop_ids)
    return corrected


SHOP_REVIEWS = RollingComparison(
    name="targets:shop",
    compare_range=_compare_shops,
    estimate_left=partial(estimate_left, "shop_counter", "shop_id"),
    reasons=(COUNTER,),
    repairs=(Repair(subjects=mysql_counted.SHOP_TOTALS, repair=_repair_shops),),
)
