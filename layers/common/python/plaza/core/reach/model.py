"""Visitors: users, anonymous ids, and networks of callers without one. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from plaza.infra.http.networks import network_of
from plaza.infra.redis.commands import Command

MAX_DAYS = 35  # of a report
RETENTION_DAYS = 42  # the first week of a report may begin six days earlier
MAX_IDS_PER_NETWORK = 250  # different ids in a week


class IssuedId(NamedTuple):
    """A signed anonymous id, valid for ``expires_in_s``."""

    text: str
    expires_in_s: int


class Visit(NamedTuple):
    """The visitor of a page (``hash_visitor``), and the commands for Redis that count the visitor
    on this day."""

    visitor: str
    commands: Sequence[Command]


class Visitors(NamedTuple):
    """The visitors of a day, or of the week that begins with it."""

    first_day: date
    number: int


class Reach(NamedTuple):
    """The visitors of some days: of all of them together, of each, and of each of their weeks."""

    total: int
    days: Sequence[Visitors]
    weeks: Sequence[Visitors]


def monday_of(day: date) -> date:
    """Return the first day of the week."""
    return day - timedelta(days=day.weekday())


def hash_visitor(actor_id: int | None, visitor_id: str | None, source_ip: str) -> str:
    """Return the pseudonym of a visitor, 16 hex digits: of a user, of a verified anonymous id, or
    of all callers of a network without one. It depends on nothing that a client can choose."""
    if actor_id is not None:
        visitor = f"user:{actor_id}"
    elif visitor_id is not None:
        visitor = f"visitor:{visitor_id}"
    else:
        visitor = f"network:{network_of(source_ip)}"
    return hashlib.sha256(visitor.encode()).hexdigest()[:16]
