"""Order tokens of totals on the scripts and statements: the greater has the newer total."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from plaza.core.reactions import LIKE, mysql_snapshots, persist, queries, react, redis_hydration
from plaza.core.reactions.model import Commit, Count
from plaza.core.reactions.mysql_rows import VERSIONS_PER_EPOCH
from plaza.core.reactions.redis_commits import apply_all
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from tests.support.consumers import make_event
from tests.support.failures import failing
from tests.support.plaza import World
from tests.support.stores import POST, gate, insert_rows, keys, meta, outbox, put

WANTED = [(LIKE, POST)]


@pytest.fixture(autouse=True)
def _post(plaza: World) -> None:
    plaza.add(POST)


def read(actor_id: int | None = 7) -> Count:
    [count], _ = queries.read_counts(WANTED, actor_id)
    return count


def token() -> str:
    at = read().at
    assert at is not None
    return at


def commit(db_version: int, total: int, *rows: tuple[int, int, bool]) -> str:
    [applied] = apply_all([Commit(LIKE, POST, db_version, total, True, rows)])
    return applied.code


def test_each_change_of_the_total_raises_the_token() -> None:
    put()
    tokens = [token()]
    for actor, on in ((7, True), (8, True), (7, False)):
        decision = gate(actor, on)
        assert decision.at == token()
        tokens.append(token())
    assert tokens == sorted(set(tokens))


def test_a_reaction_that_changes_nothing_keeps_the_token() -> None:
    """Else the token would show the time of each private collect that was repeated."""
    put()
    gate(7)
    before = token()
    assert gate(7).at == before
    assert gate(8, False).at == before


def test_a_repeat_of_a_nonce_gets_the_present_total_with_the_present_token() -> None:
    put()
    gate(7, nonce="first")
    second = gate(8)
    repeat = gate(7, nonce="first")
    assert (repeat.total, repeat.at) == (2, second.at)


def test_a_commit_raises_the_token_also_without_a_change_of_the_total() -> None:
    put()
    decision = gate(7)
    before = token()
    assert commit(1, 1, (7, decision.version_us, True)) == "APPLIED"
    assert (read().total, token() > before) == (1, True)


def test_a_commit_of_an_old_epoch_confirms_nothing() -> None:
    """Given a target that was loaded after MySQL was restored to before the commit."""
    put(n=VERSIONS_PER_EPOCH)
    decision = gate(7)
    before = token()
    assert commit(1, 1, (7, decision.version_us, True)) == "DUPLICATE"
    assert (read().total, token(), list(outbox())) == (1, before, [7])


def test_a_later_load_of_the_same_version_has_the_greater_token() -> None:
    react.react(LIKE, POST, 7, True)
    before = token()
    redis_hydration.evict_all([(LIKE, POST, None)])
    assert read().total == 1
    assert token() > before
    assert meta()["changes"] == 0


def test_a_new_epoch_outweighs_every_commit_of_the_old_one() -> None:
    put(n=5_000)
    before = token()
    redis_hydration.evict_all([(LIKE, POST, None)])
    redis.execute("UNLINK", keys().fence)
    put(n=VERSIONS_PER_EPOCH)
    assert token() > before


@pytest.mark.parametrize("zone", ["+00:00", "-11:00", "+09:30"])
@pytest.mark.parametrize("actors", [(), (7,)])
def test_a_snapshot_has_the_time_of_mysql(
    zone: str, actors: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given sessions of any time zone, with and without rows to compare."""

    def now_us() -> int:
        [(now,)] = mysql.fetch_all("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)")
        return int(now)

    mysql.write("SET SESSION time_zone = %s", (zone,))
    try:
        before = now_us()
        [snapshot] = mysql_snapshots.read_snapshots([(LIKE, POST, actors)], 10)
        assert before <= snapshot.loaded_us <= now_us()
        assert abs(snapshot.loaded_us - time.time() * 1e6) < 60e6
    finally:
        mysql.write("SET SESSION time_zone = DEFAULT")


def test_the_time_of_a_load_is_read_after_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two processes that load one target could order their loads the other way round."""
    steps: list[str] = []

    def note(step: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            steps.append(step)
            return run(*args)

        return noted

    for module, name in (
        (redis_hydration, "take_hydration_leases"),
        (mysql_snapshots, "read_snapshots"),
    ):
        monkeypatch.setattr(module, name, note(name, getattr(module, name)))
    token()
    assert steps == ["take_hydration_leases", "read_snapshots"]


def test_totals_of_mysql_have_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    insert_rows([(POST, 7, 1, 10)])

    monkeypatch.setattr(queries, "_read_counts_in_redis", failing(RedisDown("away in a test")))
    assert read() == Count(1, True, None)


def test_a_missing_target_has_no_token() -> None:
    [count], _ = queries.read_counts([(LIKE, POST._replace(id=999_999))], None)
    assert count == Count(0, False, None)


def test_an_anonymous_caller_gets_a_total_with_its_own_token(plaza: World) -> None:
    """Given a total that this process keeps for a second, while another process changes it."""
    put()
    first = read(None)
    for _ in range(100):
        assert read(None) == first
    gate(7)  # past ``react``, which drops the total that this process keeps
    cached = read(None)
    assert cached in (first, Count(1, False, token()))
    assert cached == first, "the total was not cached, so the test proves nothing"


def test_a_reaction_answers_with_the_token_of_its_total(plaza: World) -> None:
    outcome = react.react(LIKE, POST, 7, True)
    assert (outcome.total, outcome.at) == (1, token())


def test_a_provisional_reaction_has_no_token(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(react, "publish", lambda _: False)
    assert react.react(LIKE, POST, 7, True).at is None


def test_a_stored_reaction_raises_the_token(plaza: World) -> None:
    before = token()
    persist.save([make_event(7)])
    assert read().total == 1
    assert token() > before
