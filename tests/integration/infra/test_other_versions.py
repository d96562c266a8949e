"""Values in Redis that the version before or after has written, next to this one.

A field that a later version adds is ignored. A value without a required field, which an earlier
version wrote, is a miss: it is read from MySQL and replaced, never read as zeros, and no error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from plaza.commerce.flash_sales import queries as sale_queries
from plaza.commerce.shops import queries as shop_queries
from plaza.core import counters
from plaza.core.switches import redis_store, refresh
from plaza.core.switches.model import SWITCHES, Switches
from plaza.infra.derived import cache
from plaza.infra.jobs import scheduled_jobs
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches, reset_process
from plaza.operate.keyspace import key_scan
from plaza.people.auth import session_lookup
from plaza.people.blocks import block_user
from plaza.people.blocks import queries as block_queries
from plaza.people.users import cards, profiles
from tests.support.content_api import ask, comment, post
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.sales import offer
from tests.support.shop_api import add_types
from tests.support.sign_in_client import signed_in

ME, ADA, SHOP = 7, 8, 5

Change = Callable[[Any], Any]
READS: dict[str, tuple[str, Callable[[], Any]]] = {
    "a user's totals": ("*user:8:counters", lambda: profiles.read_profile(ADA, ME)),
    "a user's totals, read alone": ("*user:8:counters", lambda: counters.read_users([ADA])),
    "a card": ("*user:8:card", lambda: cards.read_cards([ADA])),
    "a card in a profile": ("*user:8:card", lambda: profiles.read_profile(ADA, ME)),
    "a shop": ("*shop:5:page", lambda: shop_queries.read(SHOP)),
    "shops": ("*shop:5:page", lambda: shop_queries.read_many([SHOP])),
    "the shop types": ("*:types", shop_queries.read_types),
    "a post": ("*post:*:text", lambda: _read(f"/posts/{_post_id()}")),
    "a list of posts": ("*user:7:posts:latest", lambda: _read("/users/7/posts")),
    "the texts of a list": ("*post:*:text", lambda: _read("/users/7/posts")),
    "a list of vouchers": ("*shop:5:vouchers", lambda: sale_queries.list_vouchers(SHOP, None, 10)),
}


def _read(path: str) -> Any:
    reply = ask("GET", path, user=None)
    assert reply.status == 200, reply.body
    return reply.body


def _post_id() -> int:
    [(post_id,)] = mysql.fetch_all("SELECT content_id FROM content WHERE content_type = 'post'")
    return int(post_id)


@pytest.fixture(autouse=True)
def town(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Add users with totals, a post with a comment, a shop with its types and a voucher. First
    pages of lists are cached for an hour: on a busy machine a test takes more than 3 s."""
    monkeypatch.setattr(cache, "FIRST_PAGE", cache.NEVER_STALE)
    mysql.write(
        "INSERT INTO user (id, nickname, avatar) VALUES (7, 'me', NULL), (8, 'Ada', 'https://a/')"
    )
    mysql.write(
        "INSERT INTO user_counter (user_id, followers_total, following_total, posts_total,"
        " likes_received_total, collects_received_total, version) VALUES (8, 1, 2, 3, 4, 5, 9)"
    )
    add_types()
    offer()
    comment(post())
    plaza.queues.drain()
    clear_caches()
    return plaza


def change_values(pattern: str, change: Change) -> None:
    """Replace the JSON in each value at keys that match."""
    keys = find_keys(pattern)
    assert keys, "the value is not in Redis"
    for key in keys:
        prefix, mark, text = str(redis.execute("HGET", key, "value")).rpartition(";")
        value = f"{prefix}{mark}{json.dumps(change(json.loads(text)))}"
        redis.execute("HSET", key, "value", value)
    clear_caches()


def add_field(value: Any) -> Any:
    if isinstance(value, dict):
        return value | {"added_later": 1}
    if value and isinstance(value[0], list):
        return [[*row, "added later"] for row in value]
    return [*value, "added later"]


def drop_field(value: Any) -> Any:
    """Drop a field: the last, in an object one that is not its version."""
    if isinstance(value, dict):
        last = [name for name in value if name not in {"version", "updated_us"}][-1]
        return {name: part for name, part in value.items() if name != last}
    if value and isinstance(value[0], list):
        return [row[:-1] for row in value]
    return value[:-1]


@pytest.mark.parametrize("change", [add_field, drop_field])
@pytest.mark.parametrize("name", READS)
def test_a_value_of_another_version_is_read_as_stored_in_mysql(name: str, change: Change) -> None:
    pattern, read = READS[name]
    read()
    clear_caches()
    expected = read()
    change_values(pattern, change)
    assert read() == expected


@pytest.mark.parametrize("name", ["a user's totals", "a card", "a shop", "a post"])
def test_a_value_that_lacks_a_field_is_replaced(name: str) -> None:
    pattern, read = READS[name]
    read()
    [key] = find_keys(pattern)
    stored = redis.execute("HGET", key, "value")
    change_values(pattern, drop_field)
    read()
    assert str(redis.execute("HGET", key, "value")).rpartition(";")[2] == stored.rpartition(";")[2]


def test_a_hold_reads_a_total_that_an_earlier_version_did_not_write() -> None:
    counters.read_users([ADA])
    change_values("*user:8:counters", lambda totals: totals | {"following_total": None})
    assert counters.hold(ADA, "following_total", 2, "user:9") is None, "two of two"
    change_values(
        "*user:8:counters", lambda totals: {n: t for n, t in totals.items() if n[:9] != "following"}
    )
    assert counters.hold(ADA, "following_total", 3, "user:9") is not None


def test_comments_that_cannot_be_read_are_counted_again() -> None:
    post_id = _post_id()
    assert counters.read_comments([post_id]) == {post_id: 1}
    redis.execute("HSET", counters.comments_key(post_id), "value", "one")
    assert counters.read_comments([post_id]) == {post_id: 1}


def test_a_zone_and_blocks_of_another_version_are_read_from_mysql() -> None:
    block_user.block(ADA, ME)
    assert block_queries.read_blocked(ME) == {ADA}
    zone = cards.read_zone(ME)
    for text in ('{"ids":[9]}', "x"):
        [blocks], [key] = find_keys("*user:7:blocks"), find_keys("*user:7:zone")
        redis.execute("HSET", blocks, "value", text)
        redis.execute("HSET", key, "value", text)
        assert block_queries.read_blocked(ME) == {ADA}
        assert cards.read_zone(ME) == zone


@pytest.mark.parametrize(
    "value",
    ["{id}:user:{end}:{end}:{now}:added later", "{id}:user:{end}:{end}", "{id}:user", "{{}}"],
)
def test_a_session_of_another_version_is_read(value: str) -> None:
    token = signed_in()
    assert session_lookup.find_session(token) is not None
    [(user_id,)] = mysql.fetch_all("SELECT user_id FROM session")
    [key] = find_keys("*:session:*")
    end, now = int(time.time()) + 600, int(time.time())
    redis.execute("SET", key, value.format(id=user_id, end=end, now=now))
    session = session_lookup.find_session(token)
    assert session is not None
    assert (session.user_id, session.role) == (user_id, "user")


@pytest.mark.parametrize(
    "text", ["{}", "soon;{}", '9999999999;{"read_only":"yes"}', "9999999999;["]
)
def test_switches_that_cannot_be_read_come_from_mysql(text: str) -> None:
    document = SWITCHES.encode(Switches(read_only=True))
    mysql.write(
        "INSERT INTO switch_change (version, document, reason, changed_by) VALUES (1, %s, '', 1)",
        (document,),
    )
    redis.execute("HSET", redis_store.KEY, "version", 1, "value", text)
    reset_process()
    assert refresh.read() == Switches(read_only=True)
    later = '{"added_later":1,' + document.removeprefix("{")
    redis.execute("HSET", redis_store.KEY, "value", f"9999999999;{later}")
    reset_process()
    assert refresh.read() == Switches(read_only=True)


def test_findings_and_runs_of_another_version_are_a_miss() -> None:
    redis.execute("SET", key_scan.REPORT_KEY, '{"started_s":1.0,"keys":[]}')
    redis.execute("SET", key_scan.SCAN_KEY, '{"started_s":1.0}')
    assert key_scan.read_report() is None
    key_scan.scan_keys(0)
    redis.execute(
        "HSET", scheduled_jobs.RUNS_KEY, "older", '{"ended_ms":1}', "sweep",
        '{"ended_ms":1,"duration_ms":2,"error":null,"result":{"swept":3},"added_later":4}',
    )  # fmt: skip
    runs = scheduled_jobs.read_runs()
    assert list(runs) == ["sweep"]
    assert runs["sweep"][:3] == (1, 2, None)
