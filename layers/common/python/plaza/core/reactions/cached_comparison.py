"""Compare Redis with MySQL. Redis is read first, so that MySQL's state is never the older one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plaza.core import counters
from plaza.core.reactions import inspection, mysql_counts
from plaza.core.reactions.drift import (
    FILTER,
    MEMBERS,
    compare_comment_total,
    compare_target,
    compare_user_totals,
)
from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import CachedTarget, Target, Unreadable
from plaza.infra.derived.comparisons import Observation, Subject, render_observed
from plaza.infra.mysql import mysql

MAX_NEWEST = 1_000  # actors of a target that are compared
_MAX_ACTORS = 50_000  # of one statement
_MAX_NAMED_TARGETS = 20  # targets of a step whose differing actors are listed
_MAX_ACTORS_IN_DETAIL = 5


def compare_subjects(
    subjects: Sequence[Subject], name_actors: bool = False
) -> dict[Subject, Observation]:
    """Compare what Redis has of ``subjects`` with MySQL; omit subjects that are not in Redis. Add
    the part of a Bloom filter of at most as many actors as ``recent`` may have; a larger one is
    checked with its row range.

    ``name_actors``: list the differing actors of up to 20 targets. Costs two round trips to Redis,
    two to MySQL and one more for each 50,000 actors; with names one more to each. Raises RedisDown,
    MysqlDown.
    """
    owners = [s for s in subjects if s.what not in KINDS]
    targets = [s for s in subjects if s.what in KINDS]
    return _compare_targets(targets, name_actors) | _compare_projections(owners)


def _compare_targets(subjects: Sequence[Subject], name_actors: bool) -> dict[Subject, Observation]:
    pairs = [(KINDS[s.what], Target(*s[1:])) for s in subjects]
    inspected = inspection.inspect_all(pairs, MAX_NEWEST)
    cached = {s: h for s, h in zip(subjects, inspected, strict=True) if h is not None}
    observations: dict[Subject, Observation] = {}
    for part in _split_by_actors(cached):
        floors = [
            (KINDS[s.what], Target(*s[1:]), h.floor_us if isinstance(h, CachedTarget) else None)
            for s, h in part.items()
        ]
        recorded = mysql_counts.read_states(floors)
        for (subject, of_redis), of_mysql in zip(part.items(), recorded, strict=True):
            has_filter = (
                isinstance(of_redis, CachedTarget)
                and of_redis.bloom > 0
                and of_redis.base <= inspection.read_recent_cap()
            )
            comparison = compare_target(of_redis, of_mysql)
            parts = (f"{FILTER}:{subject.what}:{subject.reference}",) if has_filter else ()
            observations[subject] = Observation(comparison, render_observed(of_redis), parts)
    if name_actors:
        for subject, details in _describe_member_differences(cached, observations).items():
            reasons = {**observations[subject].comparison.reasons, MEMBERS: details}
            observations[subject] = observations[subject]._replace(
                comparison=observations[subject].comparison._replace(reasons=reasons)
            )
    return observations


def _split_by_actors(
    cached: Mapping[Subject, CachedTarget | Unreadable],
) -> Iterator[dict[Subject, CachedTarget | Unreadable]]:
    """Split into parts of about 50,000 actors, so that each statement is bounded."""
    part: dict[Subject, CachedTarget | Unreadable] = {}
    actors = 0
    for subject, of_redis in cached.items():
        part[subject] = of_redis
        actors += of_redis.newest.actors if isinstance(of_redis, CachedTarget) else 0
        if actors >= _MAX_ACTORS:
            yield part
            part, actors = {}, 0
    if part:
        yield part


def _describe_member_differences(
    cached: Mapping[Subject, CachedTarget | Unreadable], observations: Mapping[Subject, Observation]
) -> dict[Subject, str]:
    """Describe which actors differ between Redis and the rows, for the first 20 targets."""
    requests: list[tuple[Subject, Kind, Target, int]] = []
    for subject, of_redis in cached.items():
        if MEMBERS in observations[subject].comparison.reasons and isinstance(
            of_redis, CachedTarget
        ):
            floor_us = of_redis.floor_us
            if floor_us is not None and len(requests) < _MAX_NAMED_TARGETS:
                requests.append((subject, KINDS[subject.what], Target(*subject[1:]), floor_us))
    if not requests:
        return {}
    in_redis = inspection.read_recent([(k, t) for _, k, t, _ in requests], MAX_NEWEST)
    in_rows = mysql_counts.read_newest_versions(
        [(k, t, f) for _, k, t, f in requests], MAX_NEWEST + 1
    )
    descriptions = {}
    for (subject, _, _, floor_us), recent, rows in zip(requests, in_redis, in_rows, strict=True):
        actors = {actor: version for actor, version in recent.items() if version > floor_us}
        on = {str(actor): version for actor, version in rows.items()}
        parts = [
            f"{difference}: {_join_first(sorted(differing))}"
            for difference, differing in (
                ("in Redis and not in the rows", actors.keys() - on.keys()),
                ("in the rows and not in Redis", on.keys() - actors.keys()),
                ("at another time", {a for a in on if actors.get(a, on[a]) != on[a]}),
            )
            if differing
        ]
        if parts:
            descriptions[subject] = "; ".join(parts)
    return descriptions


def _join_first(actors: Sequence[str]) -> str:
    shown = ", ".join(actors[:_MAX_ACTORS_IN_DETAIL])
    rest = len(actors) - _MAX_ACTORS_IN_DETAIL
    return shown if rest <= 0 else f"{shown} and {rest} more"


def _compare_projections(subjects: Sequence[Subject]) -> dict[Subject, Observation]:
    replies = counters.read_raw([(s.type, s.id) for s in subjects])
    cached = {s: raw for s, raw in zip(subjects, replies, strict=True) if raw is not None}
    users = [s.id for s in cached if s.type == "user"]
    posts = [s.id for s in cached if s.type == "post"]
    # The two statements may read different snapshots: no subject is in both.
    of_users = mysql.run_in_transaction(lambda cursor: counters.read_users_in(cursor, users))
    of_posts = mysql_counts.read_comments(posts) if posts else {}
    observations = {}
    for subject, raw in cached.items():
        if subject.type == "user":
            comparison = compare_user_totals(raw, of_users[subject.id])
        else:
            comparison = compare_comment_total(raw, *of_posts[subject.id])
        observations[subject] = Observation(comparison, render_observed(raw))
    return observations
