"""Looking at what Redis holds: first Redis, then MySQL, so that MySQL is never the older one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from plaza import counters
from plaza.infra import mysql
from plaza.reactions import KINDS, Kind, Target, inspecting
from plaza.reactions.reactions import Held, Unreadable
from plaza.reconciliation import mysql_counts
from plaza.reconciliation.reconciliation import (
    MEMBERS,
    Look,
    Subject,
    look_at_comments,
    look_at_target,
    look_at_user,
    seen_of,
)

MOST_NEWEST = 1_000  # actors of a target that are compared
_MOST_ACTORS = 50_000  # of one statement
_MOST_NAMED = 20  # targets of a step of which is said who differs
_MOST_IN_SAID = 5


class Seen(NamedTuple):
    """What came of a look, what Redis said, and whether it has a Bloom filter."""

    look: Look
    said: str
    has_filter: bool = False


def look_at(subjects: Sequence[Subject], *, by_name: bool = False) -> dict[Subject, Seen]:
    """Hold what Redis has of ``subjects`` against MySQL; what isn't in Redis is left out.

    ``by_name``: of some whose actors differ, say who does. Round trips: two to Redis, two to MySQL
    and one for each 50,000 actors; with names one more to each. Raises RedisDown, MysqlDown.
    """
    owners = [s for s in subjects if s.what not in KINDS]
    targets = [s for s in subjects if s.what in KINDS]
    return _look_at_targets(targets, by_name) | _look_at_projections(owners)


def _look_at_targets(subjects: Sequence[Subject], by_name: bool) -> dict[Subject, Seen]:
    wanted = [(KINDS[s.what], s.target) for s in subjects]
    inspected = inspecting.inspect_all(wanted, MOST_NEWEST)
    held = {s: h for s, h in zip(subjects, inspected, strict=True) if h is not None}
    seen: dict[Subject, Seen] = {}
    for part in _in_parts(held):
        floors = [
            (KINDS[s.what], s.target, h.floor_us if isinstance(h, Held) else None)
            for s, h in part.items()
        ]
        recorded = mysql_counts.read_recorded(floors)
        for (subject, of_redis), of_mysql in zip(part.items(), recorded, strict=True):
            has_filter = isinstance(of_redis, Held) and of_redis.bloom > 0
            look = look_at_target(of_redis, of_mysql)
            seen[subject] = Seen(look, seen_of(of_redis), has_filter)
    if by_name:
        for subject, said in _name_members(held, seen).items():
            reasons = {**seen[subject].look.reasons, MEMBERS: said}
            seen[subject] = seen[subject]._replace(
                look=seen[subject].look._replace(reasons=reasons)
            )
    return seen


def _in_parts(
    held: Mapping[Subject, Held | Unreadable],
) -> Iterator[dict[Subject, Held | Unreadable]]:
    """Parts that have no more actors than one statement should count."""
    part: dict[Subject, Held | Unreadable] = {}
    actors = 0
    for subject, of_redis in held.items():
        part[subject] = of_redis
        actors += of_redis.newest.actors if isinstance(of_redis, Held) else 0
        if actors >= _MOST_ACTORS:
            yield part
            part, actors = {}, 0
    if part:
        yield part


def _name_members(
    held: Mapping[Subject, Held | Unreadable], seen: Mapping[Subject, Seen]
) -> dict[Subject, str]:
    """Who is in Redis and not in the rows, and the other way round, of the first that differ."""
    wanted: list[tuple[Subject, Kind, Target, int]] = []
    for subject, of_redis in held.items():
        if MEMBERS in seen[subject].look.reasons and isinstance(of_redis, Held):
            floor_us = of_redis.floor_us
            if floor_us is not None and len(wanted) < _MOST_NAMED:
                wanted.append((subject, KINDS[subject.what], subject.target, floor_us))
    if not wanted:
        return {}
    in_redis = inspecting.read_recent([(k, t) for _, k, t, _ in wanted], MOST_NEWEST)
    in_rows = mysql_counts.read_newest([(k, t, f) for _, k, t, f in wanted], MOST_NEWEST + 1)
    said = {}
    for (subject, _, _, floor_us), recent, rows in zip(wanted, in_redis, in_rows, strict=True):
        actors = {actor: ver for actor, ver in recent.items() if ver > floor_us}
        on = {str(actor): ver for actor, ver in rows.items()}
        parts = [
            f"{what}: {_some(sorted(who))}"
            for what, who in (
                ("in Redis and not in the rows", actors.keys() - on.keys()),
                ("in the rows and not in Redis", on.keys() - actors.keys()),
                ("at another time", {a for a in on if actors.get(a, on[a]) != on[a]}),
            )
            if who
        ]
        if parts:
            said[subject] = "; ".join(parts)
    return said


def _some(who: Sequence[str]) -> str:
    shown = ", ".join(who[:_MOST_IN_SAID])
    rest = len(who) - _MOST_IN_SAID
    return shown if rest <= 0 else f"{shown} and {rest} more"


def _look_at_projections(subjects: Sequence[Subject]) -> dict[Subject, Seen]:
    answers = counters.read_raw([(s.type, s.id) for s in subjects])
    held = {s: raw for s, raw in zip(subjects, answers, strict=True) if raw is not None}
    users = [s.id for s in held if s.type == "user"]
    posts = [s.id for s in held if s.type == "post"]
    # Two statements may be of two instants: no subject is in both.
    of_users = mysql.atomically(lambda cursor: counters.read_users_in(cursor, users))
    of_posts = mysql_counts.read_comments(posts) if posts else {}
    seen = {}
    for subject, raw in held.items():
        if subject.type == "user":
            look = look_at_user(raw, of_users[subject.id])
        else:
            look = look_at_comments(raw, *of_posts[subject.id])
        seen[subject] = Seen(look, seen_of(raw))
    return seen
