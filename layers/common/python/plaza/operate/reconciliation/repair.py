"""Repair MySQL's counters from its rows, then Redis from MySQL, each with a newer version.

A finding only names its subject. The right values are counted while the counters are locked, so a
late or repeated repair changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from plaza.core import counters
from plaza.core.counters import COMMENT, CounterKey, TargetCounter, UserCounter, shop_totals
from plaza.core.reactions import KINDS, LIKE, Kind, Target, inspection, rankings, sorted_lists
from plaza.core.reactions.model import CachedTarget, PostLikes
from plaza.core.targets import lookup
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record
from plaza.notifications.unread import GroupKey, recount
from plaza.notifications.unread import queries as unread_queries
from plaza.operate.reconciliation import derived_lists, mysql_counts, mysql_runs
from plaza.operate.reconciliation.comparison import compare_subjects
from plaza.operate.reconciliation.model import (
    COUNTER,
    HOURS,
    LIST,
    REVIEW_LIKES,
    SHOP,
    SLOT,
    SORTED,
    TARGET_KINDS,
    UNREAD_BLOCKS,
    UNREAD_FRESH,
    UNREAD_SEQUENCE,
    UNREAD_TOTAL,
    UNREADABLE,
    Finding,
    RepairFindings,
    Subject,
    parse_version,
)
from plaza.operate.reconciliation.queues import REPAIRS
from plaza.social.content import inspection as texts
from plaza.social.recommendations import like_roll_up, post_hours

__all__ = ["REPAIRS", "CorrectedCounters", "repair"]

MAX_SORT_S = 20.0  # of the findings of a message
_OF_UNREAD = (UNREAD_BLOCKS, UNREAD_SEQUENCE, UNREAD_TOTAL)


@dataclass(frozen=True, slots=True)
class CorrectedCounters:
    """The counters after the commit. Versions of targets exclude ``epoch``; Redis' include it."""

    targets: Mapping[CounterKey, TargetCounter]
    users: Mapping[int, UserCounter]
    corrected_count: int
    epoch: int


@REPAIRS.consumer
def repair(messages: Sequence[RepairFindings]) -> None:
    """Repair findings that still differ.

    Per message three transactions of twelve statements at most, and for sorted lists one and what
    ``sort_list`` runs. Raises MysqlDown, RedisDown.
    """
    for message in messages:
        _repair(message.finding_ids)


def _repair(finding_ids: Collection[int]) -> None:
    findings = mysql_runs.read_findings(finding_ids)
    if not findings:
        return
    of_unread = [f for f in findings.values() if f.reason in (UNREAD_FRESH, *_OF_UNREAD)]
    if of_unread:
        _repair_unread(of_unread)
    of_lists = [f for f in findings.values() if f.reason == LIST]
    derived_lists.drop([f.subject for f in of_lists])
    of_shops = [f for f in findings.values() if f.subject.type == SHOP and f.reason != LIST]
    shop_ids = sorted({f.subject.id for f in of_shops})
    corrected_shops = _repair_shops(shop_ids) if shop_ids else 0
    of_review_likes = [f for f in findings.values() if f.reason == REVIEW_LIKES]
    like_roll_up.sync_review_likes([f.subject.id for f in of_review_likes])
    of_slots = [f for f in findings.values() if f.reason == SLOT]
    texts.repair_slots([f.subject.id for f in of_slots])
    of_hours = [f for f in findings.values() if f.reason == HOURS]
    post_hours.correct([f.subject.id for f in of_hours])
    apart = {*of_unread, *of_lists, *of_review_likes, *of_slots, *of_hours}
    unrepaired = [f for f in findings.values() if f not in apart and f.subject.type != SHOP]
    keys = {key for f in unrepaired if (key := _key_of(f.subject))}
    user_ids = sorted({f.subject.id for f in unrepaired if not _key_of(f.subject)})
    pairs = [(KINDS[key[2]], Target(*key[:2])) for key in sorted(keys) if key[2] != COMMENT]
    sorted_lists.sort_again(
        [(KINDS[f.subject.what], f.subject.target) for f in unrepaired if f.reason == SORTED],
        Deadline.in_s(MAX_SORT_S),
    )
    min_versions = _read_target_versions(pairs, keys), _read_user_versions(user_ids)
    corrected = counters.run_in_transaction(
        lambda cursor: _correct(cursor, unrepaired, *min_versions)
    )
    like_roll_up.sync_review_likes([id_ for of, id_, _ in corrected.targets if of == "review"])
    _update_redis(unrepaired, pairs, corrected)
    repaired = mysql_runs.mark_repaired(findings)
    record(
        "drift_repaired",
        {
            "drift_repaired": repaired,
            "counters_corrected": corrected.corrected_count + corrected_shops,
        },
        findings=len(findings),
    )


def _repair_unread(findings: Sequence[Finding]) -> None:
    """Recount groups under the locks of their subjects' counters and of their unread counters, and
    project the unread counters. One transaction of ten statements at most. Raises MysqlDown,
    RedisDown."""
    users = {f.subject.id for f in findings if f.reason in _OF_UNREAD}
    subjects = {(f.subject.what, f.subject.target) for f in findings if f.reason == UNREAD_FRESH}

    def work(cursor: Cursor) -> tuple[set[int], int]:
        targets = sorted({target for _, target in subjects})
        owners = lookup.read_owners(cursor, targets)
        kinds = {(*target, what.removeprefix("unread-")) for what, target in subjects}
        if kinds:
            counters.lock_targets(cursor, sorted(kinds))
        keys = [
            GroupKey(owners[target], key[2], *target)
            for key in kinds
            if (target := Target(*key[:2])) in owners
        ]
        return {*users, *owners.values()}, recount.repair(cursor, users, keys)

    recounted, corrected = counters.run_in_transaction(work)
    unread_queries.refresh_projections(sorted(recounted))
    record("unread_repaired", {"notifications_corrected": corrected}, findings=len(findings))


def _repair_shops(shop_ids: Sequence[int]) -> int:
    """Correct the counters of shops that are wrong; return how many. One transaction of three
    statements, one round trip."""
    corrected = mysql.run_in_transaction(lambda cursor: shop_totals.correct(cursor, shop_ids))
    shop_totals.drop(shop_ids)
    return corrected


def _key_of(subject: Subject) -> CounterKey | None:
    """Return the counter of a target's subject; None of a user's."""
    return (*subject.target, subject.what) if subject.what in TARGET_KINDS else None


def _read_target_versions(
    pairs: Sequence[tuple[Kind, Target]], keys: Collection[CounterKey]
) -> dict[CounterKey, int]:
    """Return the version of each total in Redis; MySQL's must not be older."""
    newest: dict[CounterKey, int] = {}
    for (kind, target), cached in zip(pairs, inspection.inspect_all(pairs, 1), strict=True):
        if isinstance(cached, CachedTarget):
            newest[*target, kind.name] = cached.db_version
    comments = [key for key in keys if key[2] == COMMENT]
    raws = counters.read_raw([(target_type, post_id) for target_type, post_id, _ in comments])
    for key, raw in zip(comments, raws, strict=True):
        if raw is not None:
            newest[key] = parse_version(raw[0]) or 0
    return newest


def _read_user_versions(user_ids: Sequence[int]) -> dict[int, int]:
    cached = counters.read_raw([("user", user_id) for user_id in user_ids])
    return {
        user_id: parse_version(raw[0]) or 0
        for user_id, raw in zip(user_ids, cached, strict=True)
        if raw is not None
    }


def _correct(
    cursor: Cursor,
    findings: Sequence[Finding],
    min_target_versions: Mapping[CounterKey, int],
    min_user_versions: Mapping[int, int],
) -> CorrectedCounters:
    """Lock the counters, targets before users, count their rows, and correct those that are wrong.

    A counter that is wrong, or of which Redis has a newer version, gets a version above both.
    """
    target_recounts: dict[CounterKey, bool] = {}
    user_recounts: dict[int, bool] = {}
    for finding in findings:
        is_wrong = finding.reason == COUNTER
        if key := _key_of(finding.subject):
            target_recounts[key] = target_recounts.get(key, False) or is_wrong
        else:
            user_id = finding.subject.id
            user_recounts[user_id] = user_recounts.get(user_id, False) or is_wrong

    epoch = 0
    targets: dict[CounterKey, TargetCounter] = {}
    users: dict[int, UserCounter] = {}
    wrong_targets: dict[CounterKey, TargetCounter] = {}
    wrong_users: dict[int, UserCounter] = {}
    if target_recounts:
        epoch = inspection.read_epoch(cursor)
        targets = counters.lock_targets(cursor, sorted(target_recounts))
        right = mysql_counts.recount_targets(
            cursor, [key for key, is_wrong in target_recounts.items() if is_wrong]
        )
        for key, counter in targets.items():
            total = right.get(key, counter.total)
            version = _raise_version(
                counter.version,
                min_target_versions.get(key, 0),
                epoch,
                is_wrong=total != counter.total,
            )
            if version != counter.version:
                wrong_targets[key] = TargetCounter(total, version)
        targets |= wrong_targets
    if user_recounts:
        locked_users = counters.lock_users(cursor, sorted(user_recounts))
        counted = mysql_counts.recount_users(
            cursor, [u for u, wrong in user_recounts.items() if wrong]
        )
        for user_id in user_recounts:
            user, min_version = locked_users[user_id], min_user_versions.get(user_id, 0)
            right_user = user._replace(**counted.get(user_id, {}))
            if right_user != user or min_version > user.version:
                user = right_user._replace(version=max(user.version, min_version) + 1)
                wrong_users[user_id] = user
            users[user_id] = user
    if wrong_targets:
        ranked = {key for key in wrong_targets if _is_ranked(key)}
        counters.correct_targets(cursor, wrong_targets, ranked)
    if wrong_users:
        counters.correct_users(cursor, wrong_users)
    return CorrectedCounters(targets, users, len(wrong_targets) + len(wrong_users), epoch)


def _raise_version(version: int, cached: int, epoch: int, *, is_wrong: bool) -> int:
    """Return the version of a counter after a repair. One that is wrong, or of which Redis has a
    newer version, gets one above both, and skips one at least.

    No commit has the version that is skipped, so a reader of the log knows that totals below it do
    not add up to those above. An event that changes nothing is logged with the version of the
    repair.
    """
    cached = cached - epoch if cached >= epoch else cached
    if not is_wrong and cached <= version:
        return version
    return max(version + 1, cached) + 1


def _update_redis(
    findings: Sequence[Finding], pairs: Sequence[tuple[Kind, Target]], corrected: CorrectedCounters
) -> None:
    """Drop the targets from Redis and project the totals. Raises RedisDown, MysqlDown."""
    projected = sorted({f.subject for f in findings if f.subject.what in ("user", COMMENT)})
    comparisons = compare_subjects(projected)
    if unreadable := [
        s for s, observation in comparisons.items() if UNREADABLE in observation.comparison.reasons
    ]:
        counters.drop_projections((s.type, s.id) for s in unreadable)
    # Also targets that are not loaded: a load that read the wrong counter loses its lease.
    inspection.evict_all((kind, target, None) for kind, target in pairs)
    rankings.project_likes(
        [
            PostLikes(target_id, counter.total, corrected.epoch + counter.version)
            for (target_type, target_id, kind), counter in corrected.targets.items()
            if target_type == "post" and kind == LIKE.name
        ]
    )
    posts = [post_id for _, post_id, kind in corrected.targets if kind == COMMENT]
    counters.refresh_projections(list(corrected.users), posts)


def _is_ranked(key: CounterKey) -> bool:
    target_type, _, kind = key
    return kind in KINDS and target_type in KINDS[kind].ranked
