"""Visitors of a day, a week and the site: who counts, forged ids, unions, outages."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from plaza.core.reach import MAX_DAYS, redis_store, report, visitor_ids
from plaza.core.reach.model import MAX_IDS_PER_NETWORK, hash_visitor
from plaza.infra.aws import secrets
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from tests.integration.conftest import Away
from tests.support.content_api import Reply, as_another_process, ask, counting_work, post
from tests.support.keyspace import find_keys
from tests.support.plaza import World

ADMIN = 77
NETWORK = "198.51.100.1"
WEDNESDAY = datetime(2026, 11, 18, 12, tzinfo=UTC)
SetTime = Callable[[datetime], None]

pytestmark = pytest.mark.usefixtures("plaza")


@pytest.fixture
def set_time(monkeypatch: pytest.MonkeyPatch) -> SetTime:
    """Set the clock of this process, at first to a Wednesday."""

    def to(at: datetime) -> None:
        monkeypatch.setattr(clock, "now_us", lambda: int(at.timestamp() * 1e6))

    to(WEDNESDAY)
    return to


def new_id(ip: str = NETWORK) -> str:
    reply = ask("POST", "/visitors", user=None, ip=ip, folder="api/auth")
    assert reply.status == 200, reply.body
    return str(reply.body["visitor_id"])


def view(post_id: str, visitor: str | None = None, *, ip: str = NETWORK, **who: Any) -> int:
    """View a post, anonymously by default; return the number of its viewers."""
    reply = ask("GET", f"/posts/{post_id}", visitor=visitor, ip=ip, **{"user": None, **who})
    assert reply.status == 200, reply.body
    return int(reply.body["viewers"])


def visitor_of(sent_id: str) -> str:
    return visitor_ids.build_visit(None, sent_id, NETWORK).visitor


def today() -> int:
    return report.read_reach(1).total


def ask_reach(query: str = "", user: int | None = ADMIN, role: str = "admin") -> Reply:
    return ask("GET", f"/ops/reach{query}", user=user, role=role, folder="api/operations")


# ---------------------------------------------------------------- who counts


def test_an_id_is_one_visitor_on_any_network_and_with_any_agent() -> None:
    post_id, visitor = post(), new_id()
    for number in range(20):
        assert view(post_id, visitor, ip=f"203.0.113.{number}", agent=f"browser {number}") == 1
    assert today() == 1


def test_ids_of_one_network_are_visitors_of_their_own() -> None:
    post_id = post()
    assert [view(post_id, new_id()) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert view(post_id) == 6, "the callers of the network without an id"
    assert view(post_id) == 6
    assert today() == 6


def test_a_user_with_an_id_is_the_user() -> None:
    post_id = post()
    view(post_id, user=7)
    assert view(post_id, new_id(), user=7) == 1


def test_a_visitor_of_many_posts_is_one_visitor_of_the_site() -> None:
    visitor = new_id()
    assert [view(post(), visitor) for _ in range(3)] == [1, 1, 1]
    assert today() == 1


def test_a_list_counts_no_visitor() -> None:
    path = f"/posts?ids={post()}"
    assert ask("GET", path, user=None, visitor=new_id()).status == 200
    assert today() == 0


def test_a_client_that_takes_ids_all_the_time_is_a_bounded_number_of_visitors() -> None:
    ids = [visitor_ids.issue(NETWORK).text for _ in range(MAX_IDS_PER_NETWORK + 100)]
    assert len(set(ids)) == MAX_IDS_PER_NETWORK
    seen = {visitor_of(item) for item in ids}
    assert len(seen) == MAX_IDS_PER_NETWORK
    neighbours = {visitor_ids.issue(f"2001:db8:1:{n:x}::1").text for n in range(300)}
    assert len(neighbours) == MAX_IDS_PER_NETWORK, "a /48 is one network"
    assert not neighbours & set(ids)


# ---------------------------------------------------------------- forged and old ids


def flip(text: str, at: int) -> str:
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


def test_a_changed_id_counts_as_none() -> None:
    visitor = new_id()
    by_network = hash_visitor(None, None, NETWORK)
    assert visitor_of(visitor) != by_network
    for at in range(len(visitor)):
        assert visitor_of(flip(visitor, at)) == by_network


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "null",
        "2026-11-16",
        "2026-11-16.x.y",
        f"2026-11-16.{'A' * 22}.{'A' * 22}",
        f"2026-02-31.{'A' * 22}.{'A' * 22}",
        f"٢٠٢٦-11-16.{'A' * 22}.{'A' * 22}",
        f"2026-11-16.{'é' * 22}.{'A' * 22}",
        "A" * 100,
        "\x00",
        "'; DROP TABLE content; --",
    ],
    ids=lambda forged: forged[:20] or "empty",
)
def test_a_forged_id_counts_as_none(forged: str, set_time: SetTime) -> None:
    post_id = post()
    view(post_id)
    assert view(post_id, forged) == 1


def test_a_value_that_is_too_long_for_an_id_is_refused() -> None:
    path = f"/posts/{post()}"
    reply = ask("GET", path, user=None, visitor="A" * 101)
    assert (reply.status, reply.slug) == (400, "invalid-request")
    assert today() == 0


def test_an_id_ends_with_its_week(set_time: SetTime) -> None:
    post_id = post()
    issued = visitor_ids.issue(NETWORK)
    end = WEDNESDAY + timedelta(seconds=issued.expires_in_s)
    assert end == datetime(2026, 11, 23, tzinfo=UTC)
    set_time(end - timedelta(microseconds=1))
    assert view(post_id, issued.text) == 1
    assert visitor_ids.issue(NETWORK).expires_in_s == 1
    set_time(end)
    assert view(post_id, issued.text) == 2, "counts as its network"
    assert view(post_id) == 2
    names = {visitor_ids.issue(NETWORK).text.split(".")[1] for _ in range(MAX_IDS_PER_NETWORK)}
    assert issued.text.split(".")[1] not in names, "nothing connects the ids of two weeks"


def test_neither_ids_nor_keys_contain_the_address(set_time: SetTime) -> None:
    view(post(), new_id())
    issued_keys = find_keys("*visitor-ids*")
    assert len(issued_keys) == 1
    assert NETWORK not in f"{new_id()}{issued_keys}"


# ---------------------------------------------------------------- the report


def test_weeks_are_unions_of_their_days(set_time: SetTime) -> None:
    """Given users who view posts on random days, the report equals the counts of sets of users."""
    rng, post_id = random.Random(5), post()
    seen: dict[date, set[int]] = {}
    for day in range(16):
        at = WEDNESDAY - timedelta(days=15 - day)
        set_time(at)
        for user in rng.sample(range(100, 140), rng.randint(0, 12)):
            view(post_id, user=user)
            seen.setdefault(at.date(), set()).add(user)
    body = ask_reach("?days=16").body
    days = [WEDNESDAY.date() - timedelta(days=n) for n in reversed(range(16))]
    assert [date.fromisoformat(item["day"]) for item in body["days"]] == days
    assert [item["visitors"] for item in body["days"]] == [len(seen.get(day, ())) for day in days]
    assert body["visitors"] == len(set().union(*seen.values()))
    for week in body["weeks"]:
        monday = date.fromisoformat(week["monday"])
        assert monday.weekday() == 0
        of_week = [seen.get(monday + timedelta(days=n), set()) for n in range(7)]
        assert week["visitors"] == len(set().union(*of_week))
    assert len(body["weeks"]) == 3, "the first is whole, although the days begin on a Tuesday"


def test_20_000_visitors_are_counted_within_2_percent() -> None:
    day = date(2026, 11, 18)
    redis.pipeline(
        [
            redis_store.commands_to_count(hash_visitor(user, None, NETWORK), day)[0]
            for user in range(20_000)
        ]
    )
    [count] = redis_store.count_visitors([[day]])
    assert abs(count - 20_000) < 400
    assert len(find_keys("*:reach:*")) == redis_store.PARTS, "on as many keys as there are parts"


def test_keys_last_for_the_longest_report() -> None:
    view(post(), new_id())
    [reach] = find_keys("*:reach:*")
    [issued] = find_keys("*:visitor-ids:*")
    assert int(redis.execute("TTL", reach)) > (MAX_DAYS + 6) * 86_400
    assert int(redis.execute("TTL", issued)) > 7 * 86_400


def test_only_admins_get_the_report() -> None:
    assert ask_reach().status == 200
    assert len(ask_reach().body["days"]) == 7
    assert ask_reach(user=7, role="user").status == 403
    assert ask_reach(user=None).status == 401
    for days in ("0", "36", "-1", "x", "1e9"):
        assert ask_reach(f"?days={days}").status == 400


# ---------------------------------------------------------------- cost and outages


def test_a_view_takes_as_many_round_trips_with_an_id_as_without() -> None:
    post_id, visitor = post(), new_id()
    work = []
    for sent in (None, visitor):
        view(post_id, sent)
        as_another_process()
        with counting_work() as counted:
            view(post_id, sent)
        work.append((counted.round_trips, counted.statements))
    assert work[0] == work[1]


def test_a_report_is_one_round_trip() -> None:
    with counting_work() as counted:
        report.read_reach(MAX_DAYS)
    assert (counted.round_trips, counted.statements) == (1, 0)


def test_without_redis_a_post_is_read_and_no_id_is_issued(plaza: World, redis_away: Away) -> None:
    post_id, visitor = post(), new_id()
    with redis_away():
        reply = ask("GET", f"/posts/{post_id}", user=None, visitor=visitor)
        assert (reply.status, reply.body["viewers"]) == (200, None)
        assert ask("POST", "/visitors", user=None, folder="api/auth").status == 503
        assert ask_reach().status == 503


def test_without_the_secret_ids_count_as_none_and_views_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    post_id, visitor = post(), new_id()
    attempts = []

    def refuse(secret_id: str) -> str:
        attempts.append(secret_id)
        raise SecretsDown("Secrets Manager is unavailable")

    with monkeypatch.context() as patch:
        patch.setattr(secrets, "read", refuse)
        for _ in range(5):
            assert view(post_id, visitor) == 1, "the network"
        assert len(attempts) == 1
        assert ask("POST", "/visitors", user=None, folder="api/auth").status == 503
    as_another_process()
    assert view(post_id, visitor) == 2
