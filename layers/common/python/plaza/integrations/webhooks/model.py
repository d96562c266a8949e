"""Webhooks, what is sent to them, and when it is tried again. No I/O.

An event that is not received blocks its webhook: what follows waits. So a webhook is one offset,
and a replay sets it back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from plaza.infra.http.urls import Url, parse_url
from plaza.infra.mysql import sql
from plaza.infra.runtime.errors import NotFound

ENABLED, DISABLED, ENDED = "enabled", "disabled", "ended"
MAX_WEBHOOKS = 50
MAX_URL_CHARS = 500
EVENTS_PER_BATCH = 100
RETRIES_S = (5, 30, 120, 600, 1_800, 3_600, 7_200, 18_000, 36_000, 86_400)
"""Pauses before an event is sent again; the last one repeats."""

MAX_FAILING_S = 5 * 86_400
"""How long a webhook may fail before it is disabled."""

MAX_LEASE_S = 240
"""How long the outcome of a batch is waited for; a batch that is older is not sent."""

OLD_SECRET_S = 86_400
"""How long the secret before a rotation signs, too."""

_KIND = re.compile(r"[a-z]{1,20}\.[a-z]{1,20}")


class WebhookMissing(NotFound):
    """There is no such webhook, or it was ended."""


class Webhook(NamedTuple):
    """A webhook. ``kinds``: the types of events that it gets, all if it is empty. Times are in UTC;
    ``read_s`` is of its offset."""

    id: int
    url: str
    kinds: frozenset[str]
    state: str
    secret_serial: int
    rotated_at: datetime | None
    reaction_seq: int
    event_seq: int
    read_s: int
    attempt: int
    failures: int
    failing_since: datetime | None
    last_error: str | None
    created_at: datetime

    def list_serials(self, now_us: int) -> tuple[int, ...]:
        """Return the serials of the secrets that sign, the newest first."""
        rotated_us = sql.to_us(self.rotated_at) if self.rotated_at else 0
        has_old = rotated_us > now_us - OLD_SECRET_S * 1_000_000
        return (self.secret_serial, self.secret_serial - 1)[: 1 + has_old]

    def wants(self, kind: str) -> bool:
        """Return whether it gets events of a type."""
        return not self.kinds or kind in self.kinds


class SentEvent(NamedTuple):
    """An event in a batch: its id and its body, and the offset after it."""

    id: str
    body: str
    reaction_seq: int
    event_seq: int


class WebhookBatch(NamedTuple):
    """Events for a webhook, in order. ``serials``: of the secrets that sign them. ``next``: the
    offset after all of them: both seqs and ``read_s``; ``expires_s``: when it is too old to be
    sent, in seconds since 1970."""

    webhook_id: int
    attempt: int
    url: str
    serials: tuple[int, ...]
    events: tuple[SentEvent, ...]
    next: tuple[int, int, int]
    expires_s: int


class DeliveryOutcome(NamedTuple):
    """What became of a batch: how many events were received, the offset after them (None: none
    was), and why the next one was not, None if it was not tried."""

    webhook_id: int
    attempt: int
    received: int
    offset: tuple[int, int, int | None] | None
    error: str | None


def find_outcome(batch: WebhookBatch, received: int, error: str | None) -> DeliveryOutcome:
    """Return the outcome of a batch of which ``received`` events were received."""
    offset: tuple[int, int, int | None] | None = None
    if received == len(batch.events):
        offset = batch.next
    elif received:
        last = batch.events[received - 1]
        offset = (last.reaction_seq, last.event_seq, None)
    return DeliveryOutcome(batch.webhook_id, batch.attempt, received, offset, error)


def find_pause_s(failures: int) -> int:
    """Return how long to wait after a number of failures, from 1."""
    return RETRIES_S[min(failures, len(RETRIES_S)) - 1]


def check_url(url: str, *, allows_loopback: bool) -> Url:
    """Return a URL that events may be sent to. Raises ValueError. Whether its address is public is
    checked when it is used."""
    if len(url) > MAX_URL_CHARS:
        raise ValueError(f"is at most {MAX_URL_CHARS} characters")
    parsed = parse_url(url)
    if not parsed.is_public_https and not (allows_loopback and parsed.is_loopback_http):
        raise ValueError("is https at the port 443")
    return parsed


def check_kinds(kinds: Sequence[str]) -> frozenset[str]:
    """Return types of events. Raises ValueError."""
    if len(kinds) > 20 or not all(_KIND.fullmatch(kind) for kind in kinds):
        raise ValueError("are up to 20 types such as like.added")
    return frozenset(kinds)
