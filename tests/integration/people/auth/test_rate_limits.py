"""Rate limits of requests: token buckets in Redis, of users and of networks."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from cli.paths import ROOT
from plaza.infra.http import limits
from plaza.infra.http.callers import Caller
from plaza.infra.http.limits import Bucket, Quota, anonymous_bucket
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches
from plaza.people.auth import caller_identity, new_session, session_end
from plaza.people.auth.caller_identity import bucket_of_user
from plaza.people.auth.sessions import hash_token, make_token
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.keyspace import own_client
from tests.support.plaza import World
from tests.support.sign_in_client import HOME, Reply, send
from tests.support.stores import POST

READ, WRITE = "GET /users/me", "PUT /posts/{post_id}/likes/me"
ADA = Bucket("writes", "7", per_s=5, burst=50)


def let_pass(seconds: float, bucket: Bucket = ADA) -> None:
    """Move the state of a bucket ``seconds`` into the past."""
    redis.execute("DECRBY", bucket.key, int(seconds * 1e6))


def empty(bucket: Bucket, wait_s: float = 100) -> None:
    """Empty a bucket, so that it has no token for ``wait_s``."""
    full_us = redis_us() + int((wait_s + (bucket.burst - 1) / bucket.per_s) * 1e6)
    redis.execute("SET", bucket.key, full_us)


def redis_us() -> int:
    """Return the time of Redis, in microseconds since 1970."""
    seconds, microseconds = redis.execute("TIME")
    return int(seconds) * 1_000_000 + int(microseconds)


def take(bucket: Bucket, times: int) -> int:
    """Return how many of ``times`` tries get a token."""
    replies = redis.run_all([bucket.acquire_call] * times)
    return sum(reply < 0 for reply in replies)


# ---------------------------------------------------------------- the bucket


def test_a_burst_passes_and_then_the_rate(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.5, burst=50)
    assert take(slow, 80) == 50
    for _ in range(20):
        let_pass(10, slow)
        assert take(slow, 30) == 5


def test_an_hour_of_tries_gets_the_burst_and_the_rate(plaza: World) -> None:
    """Given an hour of tries above the rate: 50 + 3,600 x 5 pass."""
    assert take(ADA, 100) in (50, 51)  # the tries themselves take time
    passed = 0
    for _ in range(360):
        let_pass(10)
        passed += take(ADA, 60)
    assert 18_000 - 360 <= passed <= 18_000 + 360


def test_a_token_is_available_after_the_reported_wait(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.1, burst=2)
    assert [limits.acquire(slow), limits.acquire(slow)] == [0, 0]
    wait_ms = limits.acquire(slow)
    assert 9_900 < wait_ms <= 10_000
    let_pass(wait_ms / 1000 - 0.5, slow)
    assert 0 < limits.acquire(slow) <= 500
    let_pass(0.5, slow)
    assert limits.acquire(slow) == 0
    assert limits.acquire(slow) > 9_000


def test_work_is_charged_by_its_cost(plaza: World) -> None:
    slow = Bucket("reads", "7", per_s=0.1, burst=20)
    assert limits.acquire(slow) == 0
    assert slow.charge(9)[0] == 0
    wait_ms, quota = slow.charge(12)
    assert 19_000 < wait_ms <= 20_000
    assert quota is not None
    assert quota.remaining == 0
    assert slow.charge(10)[0] == 0, "a refused charge takes nothing"
    assert limits.acquire(slow) > 9_000


def test_no_charge_exceeds_a_full_bucket(plaza: World) -> None:
    slow = Bucket("reads", "7", per_s=0.1, burst=20)
    assert slow.charge(1_000)[0] == 0
    assert limits.acquire(slow) > 0


def test_without_redis_nothing_is_charged(plaza: World, redis_away: Away) -> None:
    with redis_away():
        assert ADA.charge(10) == (0, None)


@pytest.mark.parametrize("per_s", [3, 7.5, 0.3, 2_000])
def test_a_reply_has_what_is_left(plaza: World, per_s: float) -> None:
    """Whatever the rate: a token lasts 333,334 us of 3 a second."""
    bucket = Bucket("writes", "7", per_s, burst=5)
    wait_ms, quota = bucket.read_reply(redis.run(*bucket.acquire_call))
    full_in_s, window_s = math.ceil(1 / per_s), math.ceil(5 / per_s)
    assert (wait_ms, quota) == (0, Quota(4, full_in_s, 5, window_s))
    empty(bucket, wait_s=10)
    wait_ms, quota = bucket.read_reply(redis.run(*bucket.acquire_call))
    assert 9_000 < wait_ms <= 10_000
    assert quota.remaining == 0
    assert quota.full_in_s == pytest.approx(10 + 4 / per_s, abs=1.5)


@pytest.mark.parametrize(
    ("reply", "wait_ms", "quota"),
    [
        (-200_000, 0, Quota(49, 1, 50, 10)),
        (-200_001, 0, Quota(48, 1, 50, 10)),
        (-10_000_000, 0, Quota(0, 10, 50, 10)),
        (1, 1, Quota(0, 10, 50, 10)),
        (200_000, 200, Quota(0, 10, 50, 10)),
        (200_001, 201, Quota(0, 11, 50, 10)),
    ],
)
def test_a_reply_is_rounded_so_that_clients_wait_long_enough(
    reply: int, wait_ms: int, quota: Quota
) -> None:
    assert ADA.read_reply(reply) == (wait_ms, quota)


def test_refused_tries_do_not_extend_the_wait(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.1, burst=1)
    limits.acquire(slow)
    waits = [limits.acquire(slow) for _ in range(50)]
    assert waits == sorted(waits, reverse=True)


def test_an_idle_bucket_holds_the_burst_and_no_more(plaza: World) -> None:
    slow = Bucket("writes", "7", per_s=0.5, burst=50)
    take(slow, 60)
    let_pass(86_400, slow)
    assert take(slow, 200) == 50


def test_a_bucket_expires_when_it_is_full(plaza: World) -> None:
    limits.acquire(ADA)
    assert 0 < redis.execute("PTTL", ADA.key) <= 200
    take(ADA, 100)
    assert 9_000 < redis.execute("PTTL", ADA.key) <= 10_000, "50 tokens at 5 a second"


def test_a_clock_that_goes_back_grants_no_token_twice(plaza: World) -> None:
    one_taken_us = redis_us() + 3_000_000 + 200_000  # by a clock that was three seconds ahead
    redis.execute("SET", ADA.key, one_taken_us)
    assert take(ADA, 60) in (50 - 1 - 15, 50 - 15)
    assert take(ADA, 60) <= 1


def test_users_and_groups_have_separate_buckets(plaza: World) -> None:
    empty(bucket_of_user(7, WRITE))
    assert limits.acquire(bucket_of_user(7, WRITE)) > 0
    assert limits.acquire(bucket_of_user(7, READ)) == 0
    assert limits.acquire(bucket_of_user(8, WRITE)) == 0


@pytest.mark.parametrize("burst", [7, 50])
def test_of_50_concurrent_callers_the_burst_passes(plaza: World, burst: int) -> None:
    bucket = Bucket("writes", "7", per_s=0.001, burst=burst)
    script, keys, args = bucket.acquire_call
    barrier, replies = threading.Barrier(50, timeout=60), []

    def call() -> None:
        with own_client() as own:
            own.ping()
            barrier.wait()
            replies.extend([own.eval(script.source, 1, *keys, *args) for _ in range(10)])

    threads = [threading.Thread(target=call) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(replies), sum(reply < 0 for reply in replies)) == (500, burst)


# ---------------------------------------------------------------- callers and their buckets


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
def test_reads_and_writes_have_separate_buckets(migrated: None, route: str, group: str) -> None:
    assert bucket_of_user(7, route).group == group


def test_a_network_shares_a_bucket_whose_key_has_no_address(migrated: None) -> None:
    assert anonymous_bucket("2001:db8::1") == anonymous_bucket("2001:db8::ffff")
    assert anonymous_bucket("203.0.113.7") != anonymous_bucket("203.0.113.8")
    assert "203.0.113" not in anonymous_bucket("203.0.113.7").key


def identify(token: str | None = None, route: str = READ) -> Caller:
    caller = caller_identity.identify(f"Bearer {token}" if token else None, HOME, route)
    return caller._replace(quota=None, bucket=None, signed_in_at_s=0)


def test_a_token_is_a_user_or_why_it_has_no_session(plaza: World, mysql_away: Away) -> None:
    assert identify() == Caller()
    assert identify("malformed") == Caller(refusal="malformed")
    assert identify(make_token()) == Caller(refusal="unknown")
    assert identify(new_session.open_session(7)) == Caller(7, "user")
    with mysql_away():
        assert identify(make_token()) == Caller(refusal="unavailable")


def test_a_limited_user_is_refused_with_the_time_to_wait(plaza: World) -> None:
    token = new_session.open_session(7)
    empty(bucket_of_user(7, READ), wait_s=4.2)
    assert 4_000 < identify(token).wait_ms <= 4_200
    assert identify(token, WRITE) == Caller(7, "user")


def test_the_sessions_of_a_user_share_a_bucket(plaza: World) -> None:
    session, other = new_session.open_session(7), new_session.open_session(7)
    identify(session)
    empty(bucket_of_user(7, READ))
    assert all(identify(token).wait_ms for token in (session, other))
    assert identify(new_session.open_session(8)) == Caller(8, "user")


def get_me(token: str | None) -> Reply:
    return send("GET", "/users/me", token=token, folder="api/users")


def test_a_limited_request_is_429_with_retry_after(plaza: World) -> None:
    token = new_session.open_session(7)
    empty(bucket_of_user(7, READ), wait_s=7)
    for path, folder in [("/users/me", "api/users"), ("/feed", "api/feed")]:
        reply = send("GET", path, token=token, folder=folder)
        assert (reply.status, reply.problem) == (429, "too-many-requests")
        assert reply.headers["retry-after"] == "7"


def test_a_user_passes_after_the_bucket_has_filled(plaza: World) -> None:
    token = new_session.open_session(7)
    bucket = bucket_of_user(7, READ)
    empty(bucket)
    assert get_me(token).status == 429
    redis.execute("SET", bucket.key, 0)
    assert get_me(token).status != 429


def test_callers_without_a_session_are_limited_by_network(plaza: World) -> None:
    assert identify() == Caller()
    empty(anonymous_bucket(HOME))
    assert all(identify(token).wait_ms for token in (None, make_token(), "malformed"))
    assert get_me(None).status == 429


def test_the_limit_of_a_network_does_not_apply_to_sessions(plaza: World) -> None:
    token = new_session.open_session(7)
    identify(token)
    empty(anonymous_bucket(HOME))
    assert identify(token) == Caller(7, "user")
    clear_caches()  # as in another process
    assert identify(token) == Caller(7, "user")


def test_invented_tokens_read_mysql_at_the_rate_of_the_network(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(anonymous_per_s=0.001, anonymous_burst=20)
    before = statements()
    callers = [identify(make_token()) for _ in range(100)]
    assert callers.count(Caller(refusal="unknown")) == 20
    assert statements() - before <= 22


def test_limits_come_from_the_settings(plaza: World, set_up: Callable[..., None]) -> None:
    token = new_session.open_session(7)
    set_up(writes_per_s=0.001, writes_burst=3)
    callers = [identify(token, WRITE) for _ in range(10)]
    assert [caller.user_id for caller in callers] == [7] * 3 + [None] * 7


# ---------------------------------------------------------------- costs, and Redis is unavailable


def count_trips(call: Callable[[], Any]) -> int:
    with count_round_trips() as counter:
        call()
    return counter.sent


def test_the_limit_is_taken_in_the_round_trip_of_the_session(plaza: World) -> None:
    token = new_session.open_session(7)
    identify(token)  # from MySQL
    assert count_trips(lambda: identify(token)) == 1, "session and token of the bucket together"
    clear_caches()
    assert count_trips(lambda: identify(token)) == 2, "the owner is not cached"
    assert count_trips(lambda: identify(token)) == 1
    assert count_trips(identify) == 1


def test_a_like_is_two_round_trips_and_a_limited_request_one(plaza: World) -> None:
    plaza.add(POST)
    token = new_session.open_session(7)

    def like() -> int:
        path = f"/posts/{POST.id}/likes/me"
        return send("PUT", path, token=token, folder="api/reactions").status

    assert like() == 200
    before = statements()
    assert count_trips(like) == 2, "session and limit; the gate"
    assert statements() - before <= 1, "counting itself"
    empty(bucket_of_user(7, WRITE))
    assert count_trips(like) == 1
    assert like() == 429


def test_the_figures_of_round_trips_are_those_of_whole_requests(plaza: World) -> None:
    """As docs/scaling.md has them: with the session and the rate limit."""
    plaza.add(POST)
    token = new_session.open_session(7)
    body = {"targets": [{"type": "post", "id": str(POST.id)}]}
    requests: dict[str, Callable[[], Reply]] = {
        "a like": lambda: send(
            "PUT", f"/posts/{POST.id}/likes/me", token=token, folder="api/reactions"
        ),
        "a page of 100 targets with totals and `mine`": lambda: send(
            "POST", "/reactions/query", body, token=token, folder="api/reactions"
        ),
    }
    written = (ROOT / "docs" / "scaling.md").read_text()
    for name, request in requests.items():
        for _ in range(2):
            assert request().status == 200
        [trips] = re.findall(rf"\| round trips to Redis, {re.escape(name)} \| (\d+)\b", written)
        assert count_trips(request) == int(trips)


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_without_redis_no_request_is_limited_and_it_is_counted(
    plaza: World, redis_away: Away, capsys: pytest.CaptureFixture[str]
) -> None:
    token = new_session.open_session(7)
    identify(token)
    empty(bucket_of_user(7, READ))
    empty(anonymous_bucket(HOME))
    with redis_away():
        capsys.readouterr()
        assert identify(token) == Caller(7, "user")
        assert identify() == Caller()
        assert identify(make_token()) == Caller(refusal="unknown")
        results = [line for line in lines(capsys.readouterr().out) if "rate_limits_skipped" in line]
    assert len(results) == 3
    [metric] = results[0]["_aws"]["CloudWatchMetrics"][0]["Metrics"]
    assert metric == {"Name": "rate_limits_skipped", "Unit": "Count"}


def test_limited_requests_are_counted(plaza: World, capsys: pytest.CaptureFixture[str]) -> None:
    token = new_session.open_session(7)
    empty(bucket_of_user(7, READ))
    capsys.readouterr()
    get_me(token)
    [line] = lines(capsys.readouterr().out)
    assert (line["event"], line["status"], line["requests_limited"]) == ("request_served", 429, 1)
    [metric] = line["_aws"]["CloudWatchMetrics"][0]["Metrics"]
    assert metric == {"Name": "requests_limited", "Unit": "Count"}


def test_an_ended_session_is_refused_although_its_owner_is_cached(plaza: World) -> None:
    token = new_session.open_session(7)
    identify(token)
    session_end.end_session(token)
    assert identify(token) == Caller(refusal="unknown")
    assert len(caller_identity._owners) == 0


def test_the_cache_of_owners_is_bounded(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_identity._owners, "_max_entries", 3)
    tokens = [new_session.open_session(user_id) for user_id in range(1, 6)]
    for token in tokens:
        identify(token)
    owners = [caller_identity._owners.get(hash_token(token)) for token in tokens]
    assert owners == [None, None, 3, 4, 5]
