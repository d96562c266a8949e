"""How often somebody may call: buckets of tokens in Redis, taken from where sessions are asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.auth import caller_identity, new_session, session_end
from plaza.auth.caller_identity import bucket_of_user
from plaza.auth.sessions import hash_token, make_token
from plaza.infra import limits, redis
from plaza.infra.limits import Bucket, anonymous_bucket
from plaza.infra.process import clear_caches
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.functions import event, handler
from tests.support.keyspace import own_client
from tests.support.plaza import World
from tests.support.signing import HOME, Reply, send

READ, WRITE = "GET /users/me", "PUT /posts/{post_id}/likes/me"
ADA = Bucket("writes", "7", per_s=5, burst=50)


def let_pass(seconds: float, bucket: Bucket = ADA) -> None:
    """As if so much time had gone by since a token was taken."""
    redis.execute("DECRBY", bucket.key, int(seconds * 1e6))


def empty(bucket: Bucket, wait_s: float = 100) -> None:
    """As if it had been used so much that there is no token for ``wait_s``."""
    full_us = redis_us() + int((wait_s + (bucket.burst - 1) / bucket.per_s) * 1e6)
    redis.execute("SET", bucket.key, full_us)


def redis_us() -> int:
    """The clock of Redis."""
    seconds, microseconds = redis.execute("TIME")
    return int(seconds) * 1_000_000 + int(microseconds)


def taken(bucket: Bucket, times: int) -> int:
    """How many of so many tries get a token."""
    answers = redis.run_all([bucket.acquire_call] * times)
    return answers.count(0)


# ---------------------------------------------------------------- the bucket


def test_a_burst_passes_and_then_the_rate(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.5, burst=50)
    assert taken(slow, 80) == 50
    for _ in range(20):
        let_pass(10, slow)
        assert taken(slow, 30) == 5


def test_over_an_hour_it_is_burst_and_rate_and_no_more(plaza: World) -> None:
    """Somebody tries 100 times a second for 3,600 s of a moved clock: 50 + 3,600 x 5."""
    assert taken(ADA, 100) in (50, 51)  # the tries themselves take time
    passed = 0
    for _ in range(360):
        let_pass(10)
        passed += taken(ADA, 60)
    assert 18_000 - 360 <= passed <= 18_000 + 360


def test_who_waits_as_long_as_they_are_told_gets_one(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.1, burst=2)
    assert [limits.acquire(slow), limits.acquire(slow)] == [0, 0]
    wait_ms = limits.acquire(slow)
    assert 9_900 < wait_ms <= 10_000
    let_pass(wait_ms / 1000 - 0.5, slow)
    assert 0 < limits.acquire(slow) <= 500
    let_pass(0.5, slow)
    assert limits.acquire(slow) == 0
    assert limits.acquire(slow) > 9_000


def test_what_is_refused_makes_it_no_later(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.1, burst=1)
    limits.acquire(slow)
    waits = [limits.acquire(slow) for _ in range(50)]
    assert waits == sorted(waits, reverse=True)


def test_who_was_away_for_long_has_the_burst_and_not_more(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.5, burst=50)
    taken(slow, 60)
    let_pass(86_400, slow)
    assert taken(slow, 200) == 50


def test_a_bucket_that_is_full_again_is_gone(plaza: World) -> None:
    limits.acquire(ADA)
    assert 0 < redis.execute("PTTL", ADA.key) <= 200
    taken(ADA, 100)
    assert 9_000 < redis.execute("PTTL", ADA.key) <= 10_000, "50 tokens at 5 a second"


def test_a_clock_that_goes_back_brings_no_token_twice(plaza: World) -> None:
    one_taken_us = redis_us() + 3_000_000 + 200_000  # by a clock that was three seconds ahead
    redis.execute("SET", ADA.key, one_taken_us)
    assert taken(ADA, 60) in (50 - 1 - 15, 50 - 15)
    assert taken(ADA, 60) <= 1


def test_buckets_of_others_and_of_other_groups_are_others(plaza: World) -> None:
    empty(bucket_of_user(7, WRITE))
    assert limits.acquire(bucket_of_user(7, WRITE)) > 0
    assert limits.acquire(bucket_of_user(7, READ)) == 0
    assert limits.acquire(bucket_of_user(8, WRITE)) == 0


@pytest.mark.parametrize("burst", [7, 50])
def test_of_fifty_who_call_at_once_as_many_pass_as_may(plaza: World, burst: int) -> None:
    bucket = Bucket("writes", "7", per_s=0.001, burst=burst)
    script, keys, args = bucket.acquire_call
    barrier, answers = threading.Barrier(50, timeout=60), []

    def call() -> None:
        with own_client() as own:
            own.ping()
            barrier.wait()
            answers.extend([own.eval(script.source, 1, *keys, *args) for _ in range(10)])

    threads = [threading.Thread(target=call) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answers), answers.count(0)) == (500, burst)


# ---------------------------------------------------------------- who is limited, and by what


@pytest.mark.parametrize(
    ("route", "group"),
    [
        (READ, "reads"),
        ("GET /posts/{post_id}", "reads"),
        ("POST /reactions/query", "reads"),
        (WRITE, "writes"),
        ("DELETE /posts/{post_id}", "writes"),
        ("PATCH /users/me", "writes"),
        ("POST /posts", "writes"),
    ],
)
def test_what_only_reads_is_counted_apart_from_what_writes(
    migrated: None, route: str, group: str
) -> None:
    assert bucket_of_user(7, route).group == group


def test_neighbours_in_a_network_share_a_bucket_and_a_key_names_no_address(migrated: None) -> None:
    assert anonymous_bucket("2001:db8::1") == anonymous_bucket("2001:db8::ffff")
    assert anonymous_bucket("203.0.113.7") != anonymous_bucket("203.0.113.8")
    assert "203.0.113" not in anonymous_bucket("203.0.113.7").key


def identify(token: str | None = None, route: str = READ) -> dict[str, str]:
    """What the authorizer says."""
    asked = event("authorizer.no_token")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    context = asked["requestContext"] | {"http": {"sourceIp": HOME}}
    said: dict[str, str] = handler("api/authorizer")(
        asked | {"routeKey": route, "headers": headers, "requestContext": context}, None
    )["context"]
    return said


def test_a_user_who_calls_too_often_is_refused_and_told_when_to_come_back(plaza: World) -> None:
    token = new_session.open_session(7)
    empty(bucket_of_user(7, READ), wait_s=4.2)
    assert identify(token) == {"retry_after_s": "5"}
    assert identify(token, WRITE) == {"user_id": "7", "role": "user"}


def test_the_limit_is_the_users_whatever_their_session(plaza: World) -> None:
    mine, other = new_session.open_session(7), new_session.open_session(7)
    identify(mine)
    empty(bucket_of_user(7, READ))
    assert set(identify(mine)) == set(identify(other)) == {"retry_after_s"}
    assert "user_id" in identify(new_session.open_session(8))


def get_me(token: str | None) -> Reply:
    return send("GET", "/users/me", token=token, folder="api/users")


def test_too_often_is_429_with_retry_after_on_any_route(plaza: World) -> None:
    token = new_session.open_session(7)
    empty(bucket_of_user(7, READ), wait_s=7)
    for path, folder in [("/users/me", "api/users"), ("/feed", "api/feed")]:
        reply = send("GET", path, token=token, folder=folder)
        assert (reply.status, reply.problem) == (429, "too-many")
        assert reply.headers["retry-after"] == "7"


def test_the_bucket_fills_and_the_user_is_let_in_again(plaza: World) -> None:
    token = new_session.open_session(7)
    bucket = bucket_of_user(7, READ)
    empty(bucket)
    assert get_me(token).status == 429
    redis.execute("SET", bucket.key, 0)
    assert get_me(token).status != 429


def test_without_a_session_it_is_the_address_that_is_limited(plaza: World) -> None:
    assert identify() == {"anonymous": "true"}
    empty(anonymous_bucket(HOME))
    assert set(identify()) == {"retry_after_s"}
    assert set(identify(make_token())) == {"retry_after_s"}
    assert set(identify("not one of ours")) == {"retry_after_s"}
    assert get_me(None).status == 429


def test_who_has_a_session_is_not_held_up_by_neighbours(plaza: World) -> None:
    token = new_session.open_session(7)
    identify(token)
    empty(anonymous_bucket(HOME))
    assert identify(token)["user_id"] == "7"
    clear_caches()  # in another process
    assert identify(token)["user_id"] == "7"


def test_tokens_that_nobody_was_given_do_not_reach_mysql_without_end(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(anonymous_per_s=0.001, anonymous_burst=20)
    before = statements()
    said = [identify(make_token()) for _ in range(100)]
    assert said.count({"refusal": "unknown"}) == 20
    assert statements() - before <= 22


def test_the_numbers_come_from_the_settings(plaza: World, set_up: Callable[..., None]) -> None:
    token = new_session.open_session(7)
    set_up(writes_per_s=0.001, writes_burst=3)
    said = [identify(token, WRITE) for _ in range(10)]
    assert [("user_id" in answer) for answer in said] == [True] * 3 + [False] * 7


# ---------------------------------------------------------------- what it costs, and Redis away


def trips(ask_it: Callable[[], Any]) -> int:
    with count_round_trips() as counter:
        ask_it()
    return counter.sent


def test_it_costs_no_round_trip_that_was_not_made_before(plaza: World) -> None:
    token = new_session.open_session(7)
    identify(token)  # from MySQL
    assert trips(lambda: identify(token)) == 1, "session and token of the bucket together"
    clear_caches()
    assert trips(lambda: identify(token)) == 2, "whose token is it? once per process"
    assert trips(lambda: identify(token)) == 1
    assert trips(identify) == 1


def test_a_route_itself_asks_nothing_for_it(plaza: World) -> None:
    asked = event("users.get_me")
    handler("api/users")(asked, None)
    asked["requestContext"]["authorizer"]["lambda"] = {"retry_after_s": "3"}
    with count_round_trips() as counter:
        assert handler("api/users")(asked, None)["statusCode"] == 429
    assert counter.sent == 0


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_without_redis_everybody_may_and_it_is_counted(
    plaza: World, redis_away: Away, capsys: pytest.CaptureFixture[str]
) -> None:
    token = new_session.open_session(7)
    identify(token)
    empty(bucket_of_user(7, READ))
    empty(anonymous_bucket(HOME))
    with redis_away():
        capsys.readouterr()
        assert identify(token) == {"user_id": "7", "role": "user"}
        assert identify() == {"anonymous": "true"}
        assert identify(make_token()) == {"refusal": "unknown"}
        found = [line for line in lines(capsys.readouterr().out) if "rate_limits_skipped" in line]
    assert len(found) == 3
    assert found[0]["_aws"]["CloudWatchMetrics"][0]["Metrics"] == [{"Name": "rate_limits_skipped"}]


def test_who_is_refused_is_counted(plaza: World, capsys: pytest.CaptureFixture[str]) -> None:
    token = new_session.open_session(7)
    empty(bucket_of_user(7, READ))
    capsys.readouterr()
    identify(token)
    [line] = [line for line in lines(capsys.readouterr().out) if "requests_limited" in line]
    assert line["requests_limited"] == 1


def test_a_session_that_ended_is_over_though_its_owner_is_remembered(plaza: World) -> None:
    token = new_session.open_session(7)
    identify(token)
    session_end.end_session(token)
    assert identify(token) == {"refusal": "unknown"}
    assert len(caller_identity._owners) == 0


def test_this_process_remembers_no_more_owners_than_it_should(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_identity._owners, "_max_entries", 3)
    tokens = [new_session.open_session(user_id) for user_id in range(1, 6)]
    for token in tokens:
        identify(token)
    owners = [caller_identity._owners.get(hash_token(token)) for token in tokens]
    assert owners == [None, None, 3, 4, 5]
