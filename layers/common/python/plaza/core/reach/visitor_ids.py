"""Anonymous ids: issued and signed by the deployment, valid until the end of the week.

An id is ``<monday>.<name>.<signature>``. Names follow from the network, the week and a number below
250, so that a client that takes new ids all the time is at most 250 visitors. A name says nothing
about the network, and nothing connects the ids of two weeks.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

from plaza.core.reach import redis_store
from plaza.core.reach.model import MAX_IDS_PER_NETWORK, IssuedId, Visit, hash_visitor, monday_of
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.http.networks import site_of
from plaza.infra.http.signatures import is_signed, sign
from plaza.infra.mysql import sql
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.process import LocalCache

_ID = re.compile(r"(\d{4}-\d\d-\d\d)\.([\w-]{22})\.([\w-]{22})", re.ASCII)
_PURPOSE = "visitor id"
# After a failure ids are not checked for a minute: a view must not wait for them.
_failed: LocalCache[str, bool] = LocalCache(max_entries=1, ttl_s=60)


def issue(address: str) -> IssuedId:
    """Return an id for a client of the network of ``address``. One round trip. Raises RedisDown,
    SecretsDown."""
    now = sql.from_us(clock.now_us())
    monday = monday_of(now.date())
    network = sign("visitor network", f"{monday} {site_of(address)}")
    number = redis_store.take_number(network, monday)
    is_shared = number > MAX_IDS_PER_NETWORK
    named = f"{monday}.{sign('visitor name', f'{network} {number % MAX_IDS_PER_NETWORK}')}"
    end = datetime.combine(monday + timedelta(days=7), time(), UTC)
    record("visitor_id_issued", {"visitor_ids_issued": 1, "visitor_ids_shared": int(is_shared)})
    return IssuedId(f"{named}.{sign(_PURPOSE, named)}", -(-(end - now) // timedelta(seconds=1)))


def build_visit(actor_id: int | None, sent_id: str | None, address: str) -> Visit:
    """Return the visit of the visitor who sends ``sent_id`` (None: none) from ``address``.

    An id that this deployment did not sign this week counts as none. One call to Secrets Manager a
    process, no round trip.
    """
    visitor_id = None if actor_id is not None or sent_id is None else _verify(sent_id)
    visitor = hash_visitor(actor_id, visitor_id, address)
    return Visit(visitor, redis_store.commands_to_count(visitor, clock.today()))


def _verify(sent_id: str) -> str | None:
    """Return the name in an id, None if it is not valid or cannot be checked."""
    parts = _ID.fullmatch(sent_id)
    if parts is None or parts[1] != str(monday_of(clock.today())):
        return None
    if _PURPOSE in _failed:
        return None
    try:
        return parts[2] if is_signed(_PURPOSE, f"{parts[1]}.{parts[2]}", parts[3]) else None
    except SecretsDown as error:
        _failed.put(_PURPOSE, True)
        record("visitor_ids_unchecked", {"visitor_ids_unchecked": 1}, **error_fields(error))
        return None
