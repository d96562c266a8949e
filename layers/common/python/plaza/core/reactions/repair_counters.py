"""Repair MySQL's counters from its rows, then Redis from MySQL, each with a newer version."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from plaza.core import counters
from plaza.core.counters import COMMENT, CounterKey, TargetCounter, UserCounter
from plaza.core.reactions import inspection, mysql_counts, rankings, sorted_lists
from plaza.core.reactions.cached_comparison import compare_subjects
from plaza.core.reactions.drift import SORTED, TARGET_KINDS, UNREADABLE, parse_version
from plaza.core.reactions.kinds import KINDS, LIKE, Kind
from plaza.core.reactions.model import CachedTarget, PostLikes, Target
from plaza.infra.derived.comparisons import COUNTER, Finding, Subject
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.clock import Deadline

MAX_SORT_S = 20.0  # of the findings of a message


@dataclass(frozen=True, slots=True)
class CorrectedCounters:
    """The counters after the commit. Versions of targets exclude ``epoch``; Redis' include it."""

    targets: Mapping[CounterKey, TargetCounter]
    users: Mapping[int, UserCounter]
    corrected_count: int
    epoch: int


def repair(findings: Sequence[Finding]) -> int:
    """Repair counters, sorted lists and what Redis has of them; return how many counters were
    wrong. One transaction, and for sorted lists what ``sort_list`` runs. Raises MysqlDown,
    RedisDown."""
    keys = {key for f in findings if (key := _key_of(f.subject))}
    user_ids = sorted({f.subject.id for f in findings if not _key_of(f.subject)})
    pairs = [(KINDS[key[2]], Target(*key[:2])) for key in sorted(keys) if key[2] != COMMENT]
    sorted_lists.sort_again(
        [(KINDS[f.subject.what], Target(*f.subject[1:])) for f in findings if f.reason == SORTED],
        Deadline.in_s(MAX_SORT_S),
    )
    min_versions = _read_target_versions(pairs, keys), _read_user_versions(user_ids)
    corrected = counters.run_in_transaction(
        lambda cursor: _correct(cursor, findings, *min_versions)
    )
    _update_redis(findings, pairs, corrected)
    return corrected.corrected_count


def _key_of(subject: Subject) -> CounterKey | None:
    """Return the counter of a target's subject; None of a user's."""
    return (*subject[1:], subject.what) if subject.what in TARGET_KINDS else None


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
