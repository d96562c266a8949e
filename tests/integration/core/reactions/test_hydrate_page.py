"""Pages of targets that Redis has not loaded: each loads a part, and MySQL has the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from plaza.core.reactions import (
    LIKE,
    Kind,
    Target,
    hydration,
    mysql_snapshots,
    persist,
    queries,
    react,
    reaction_log,
    redis_hydration,
)
from plaza.core.reactions.model import Count, ReactionUndecided, Snapshot
from plaza.infra.mysql import mysql
from plaza.infra.redis import masters, redis
from plaza.infra.redis.token_bucket import TokenBucket
from tests.support.call_log import record_call
from tests.support.consumers import make_event, statements
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.stores import insert_rows, keys, meta, put, recent, total

POSTS = [Target("post", post_id) for post_id in range(1, 41)]
PAGE = [(LIKE, target) for target in POSTS]
ACTOR = 7
TWO = [Count(2, True)] * len(PAGE)
PART = 10  # targets that a page loads
EPOCH = 2**40


@pytest.fixture(autouse=True)
def page(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty posts with likes of 7 and 8; a page loads ten."""
    plaza.add(*POSTS)
    insert_rows([(target, actor, 1, 1_000 + actor) for target in POSTS for actor in (7, 8)])
    monkeypatch.setattr(hydration, "_MAX_COST_OF_PAGE", PART * (hydration._COST_OF_TARGET + 2))
    monkeypatch.setattr(hydration, "HYDRATE_WAIT_S", 0)


@pytest.fixture
def epochs() -> Iterator[None]:
    yield
    mysql.write("UPDATE log_barrier SET epoch = 0")


def totals(counts: Sequence[Count]) -> list[Count]:
    """Return counts without their order tokens."""
    return [count._replace(at=None) for count in counts]


def read() -> tuple[list[Count], bool]:
    counts, exact = queries.read_counts(PAGE, ACTOR)
    return totals(counts), exact


def loaded() -> list[Target]:
    return [target for target in POSTS if meta(target)]


def before_hydration(patch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Run ``action`` once, between the next snapshots and the scripts that load them."""
    hydrate_all, left = redis_hydration.hydrate_all, [action]

    def hydrate_after(loads: Any) -> list[str]:
        if left:
            left.pop()()
        return hydrate_all(loads)

    patch.setattr(redis_hydration, "hydrate_all", hydrate_after)


def test_each_page_loads_a_part_and_is_exact() -> None:
    for count in (10, 20, 30, 40, 40):
        assert read() == (TWO, True)
        assert loaded() == POSTS[:count]
    assert all(recent(target) == [7, 8] for target in POSTS)
    assert find_keys("*:lease") == []


def test_a_page_costs_as_many_statements_as_another() -> None:
    before = statements()
    read()
    first = statements() - before
    assert first == 7, "existence, sizes, snapshots, hidden texts, totals, states; this one"
    for _ in range(3):
        read()
    before = statements()
    read()
    assert statements() - before == 1


def test_a_target_that_exceeds_a_page_is_loaded_by_a_page_of_its_own() -> None:
    large = POSTS[0]
    insert_rows([(large, actor, 1, 5_000 + actor) for actor in range(100, 400)])
    sizes = [read()[0][0].total for _ in range(2)]
    assert sizes == [302, 302]
    assert loaded()[0] == large
    assert not meta(large)["complete"]


def test_targets_with_an_outbox_are_loaded_first() -> None:
    """Given likes that MySQL lacks, of targets at the end of the page."""
    for target in POSTS[-3:]:
        redis.execute("HSET", keys(target).outbox, 9, "1:5000:0:cabc")
    counts, exact = read()
    assert exact
    assert [count.total for count in counts] == [2] * 37 + [3] * 3
    assert {*POSTS[-3:]} <= {*loaded()}


def test_a_page_with_more_outboxes_than_it_loads_is_not_exact() -> None:
    for target in POSTS:
        redis.execute("HSET", keys(target).outbox, 9, "1:5000:0:cabc")
    answers = [read() for _ in range(5)]
    assert [exact for _, exact in answers] == [False, False, False, False, True]
    assert {count.total for count in answers[-1][0]} == {3}


def test_a_like_of_a_target_that_was_left_is_counted_at_once() -> None:
    read()
    assert react.react(LIKE, POSTS[-1], 9, True).total == 3
    counts, exact = read()
    assert (counts[-1], exact) == (Count(3, True), True)


def test_an_epoch_that_is_raised_between_two_parts(epochs: None) -> None:
    """Given MySQL that was restored after a part was loaded."""
    assert read() == (TWO, True)
    reaction_log.raise_epoch()
    assert read() == (TWO, True)
    assert [meta(target)["db_version"] for target in POSTS[:20]] == [2] * 10 + [EPOCH + 2] * 10
    persist.save([make_event(9, at=9, target=target) for target in POSTS])
    for _ in range(3):  # nine targets each: they have an actor more
        read()
    later = meta(POSTS[15])
    assert (later["db_version"], total(POSTS[15]), recent(POSTS[15])) == (EPOCH + 3, 3, [7, 8, 9])
    assert total(POSTS[39]) == 3


def test_an_epoch_that_is_raised_between_sizes_and_snapshots(
    epochs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_sizes = mysql_snapshots.read_sizes

    def read_and_raise(pairs: Any) -> Any:
        sizes = read_sizes(pairs)
        reaction_log.raise_epoch()
        return sizes

    with monkeypatch.context() as patch:
        patch.setattr(mysql_snapshots, "read_sizes", read_and_raise)
        assert read() == (TWO, True)
    assert {meta(target)["db_version"] for target in loaded()} == {EPOCH + 2}


def test_an_epoch_that_is_raised_after_the_snapshots_refuses_commits_of_neither(
    epochs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a restore, and a commit of the new epoch, while a part is loaded."""

    def restore() -> None:
        reaction_log.raise_epoch()
        persist.save([make_event(9, at=9, target=POSTS[0])])

    with monkeypatch.context() as patch:
        before_hydration(patch, restore)
        read()
    put_right = queries.read_counts(PAGE[:1], ACTOR)[0]
    codes = {meta(POSTS[0]).get("db_version"), meta(POSTS[1])["db_version"]}
    assert codes == {2}, "the commit waits for those between: a gap, after a second"
    assert meta(POSTS[0])["blocked"] > 0
    assert put_right[0].total == 2
    redis_hydration.evict_all([(*PAGE[0], 2)])  # as its gap does
    assert totals(queries.read_counts(PAGE[:1], ACTOR)[0]) == [Count(3, True)]
    assert meta(POSTS[0])["db_version"] == EPOCH + 3


@pytest.mark.parametrize("moment", ["sizes", "snapshots"])
def test_a_failover_while_a_part_is_loaded(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a new master that has neither the leases nor the targets."""
    monkeypatch.setattr(hydration, "HYDRATE_WAIT_S", 5)
    name = {"sizes": "read_sizes", "snapshots": "read_snapshots"}[moment]
    ask, lost = getattr(mysql_snapshots, name), [True]

    def lose(*args: Any) -> Any:
        answer = ask(*args)
        if lost:
            redis.execute("FLUSHALL")
            lost.clear()
        return answer

    monkeypatch.setattr(mysql_snapshots, name, lose)
    assert read() == (TWO, True)
    assert find_keys("*:lease") == []
    for _ in range(4):
        assert read() == (TWO, True)
    assert loaded() == POSTS


def test_a_failover_between_two_parts() -> None:
    """Given a part that the master before loaded, with a like that is on the queue only."""
    assert read() == (TWO, True)
    assert react.react(LIKE, POSTS[0], 9, True).total == 3
    for target in POSTS[:PART]:
        redis.execute("HSET", keys(target).meta, "term", "0" * 40)
    counts, exact = read()
    assert (counts[0], counts[1:], exact) == (Count(3, True), TWO[1:], True)
    terms = {target: masters.find_node(keys(target).meta).term for target in POSTS}
    assert meta(POSTS[0])["term"] == terms[POSTS[0]]
    for _ in range(4):
        read()
    assert {target: meta(target)["term"] for target in POSTS} == terms
    assert total(POSTS[0]) == 3


def test_two_readers_load_a_page_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a reader who begins while another has read the snapshots of a part."""
    asked: list[tuple[Kind, Target]] = []
    read_snapshots = mysql_snapshots.read_snapshots
    second: list[Any] = []

    def read_and_record(requests: Any, *args: Any) -> list[Snapshot]:
        asked.extend((kind, target) for kind, target, _ in requests)
        return read_snapshots(requests, *args)

    monkeypatch.setattr(mysql_snapshots, "read_snapshots", read_and_record)
    with monkeypatch.context() as patch:
        before_hydration(patch, lambda: record_call(second, hydration.hydrate_page(PAGE), None))
        assert read() == (TWO, True)
    [(busy, saved)] = second
    assert busy == PAGE[:PART], "leased by the first"
    assert saved == {*PAGE[2 * PART :]}
    assert asked == PAGE[: 2 * PART], "each target once"
    assert loaded() == POSTS[: 2 * PART]


def test_a_reader_who_waits_in_vain_takes_from_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(rate_per_s=1e-9, burst=1))
    redis_hydration.take_hydration_leases(PAGE[:5])
    assert read() == (TWO, False)
    with pytest.raises(ReactionUndecided):
        read()


def test_a_page_that_loads_what_it_may_leaves_what_others_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a reader who waits for targets of another, and has loaded a part meanwhile."""
    monkeypatch.setattr(hydration, "HYDRATE_WAIT_S", 60)
    other = [
        (*pair, lease)
        for pair, lease in zip(
            PAGE[:15], redis_hydration.take_hydration_leases(PAGE[:15]), strict=True
        )
    ]
    monkeypatch.setattr(
        "plaza.infra.runtime.clock.sleep",
        lambda _: redis_hydration.release_hydration_leases(other),
    )
    assert read() == (TWO, True)
    assert loaded() == POSTS[15:25]


def test_a_list_that_has_ended_since_its_size_was_read_is_not_read(plaza: World) -> None:
    size = mysql_snapshots.read_sizes(PAGE)[PAGE[0]]
    assert (size.total, size.is_sorted) == (2, False)
    sizes = dict.fromkeys(PAGE, size._replace(is_sorted=True))
    requests = [(*pair, ()) for pair in PAGE]
    ended = mysql_snapshots.read_snapshots(requests, 5, sizes)
    assert [(s.total, s.newest, s.is_complete) for s in ended] == [
        (2, [(8, 1_008), (7, 1_007)], True)
    ] * len(PAGE)


def test_a_target_that_grew_since_its_size_was_read_is_cut() -> None:
    sizes = mysql_snapshots.read_sizes(PAGE)
    insert_rows([(POSTS[0], actor, 1, 2_000 + actor) for actor in range(10, 30)])
    [snapshot] = mysql_snapshots.read_snapshots([(*PAGE[0], ())], 5, sizes)
    assert (snapshot.total, snapshot.is_complete) == (22, False)
    assert [actor for actor, _ in snapshot.newest] == [29, 28, 27, 26, 25]


def test_repeated_targets_are_loaded_once() -> None:
    assert hydration.hydrate([*PAGE, *PAGE]) == []
    assert totals(queries.read_counts([*PAGE, *PAGE], ACTOR)[0]) == TWO * 2
    assert put(target=POSTS[0]) == "PRESENT"


def test_a_statement_of_many_targets_has_few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    fetch_all = mysql.fetch_all
    monkeypatch.setattr(
        mysql,
        "fetch_all",
        lambda sql, args=(): record_call(asked, sql, fetch_all(sql, args)),
    )
    sizes = mysql_snapshots.read_sizes(PAGE)
    mysql_snapshots.read_snapshots([(*pair, ()) for pair in PAGE], 50, sizes)
    assert [sql.count("SELECT") for sql in asked] == [3, 6]
