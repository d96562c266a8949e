"""A consumer applies its commits only under the term of the current master (term_guard).

The masters are simulated; test_term.py has real servers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from plaza.core.reactions import LIKE, mysql_log, persist, react, term_guard
from plaza.core.reactions.model import ReactionEvent
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, REACTIONS
from plaza.core.reactions.term_guard import MasterDeposed
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, masters, redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.masters import Master
from tests.support.consumers import BASE_US, make_event
from tests.support.plaza import World, decode, read_event
from tests.support.stores import POST, apply, keys, meta, outbox, put, recent, total

Connect = Callable[..., None]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Return a function that makes this process believe in a master, or in none."""

    def believe(term: str | None, predecessor: str = "before", first_slot: int = 0) -> None:
        def read_masters(max_age_s: float = 1) -> dict[str, Master]:
            if term is None:
                raise RedisDown("unavailable in this test")
            return dict.fromkeys(masters._TAGS, Master(first_slot, term, predecessor))

        monkeypatch.setattr(masters, "read_masters", read_masters)

    return believe


def store(term: str, first_slot: int = 0) -> None:
    term_guard.store_terms({"{0": Master(first_slot, term, "")})


def stored() -> list[tuple[int, str]]:
    return list(mysql.fetch_all("SELECT first_slot, term FROM redis_term ORDER BY first_slot"))


def accept(plaza: World, actor: int) -> list[ReactionEvent]:
    react.react(LIKE, POST, actor, True)
    return [read_event(body) for body in plaza.queues.take(REACTIONS)]


def saved() -> list[int]:
    return [a for (a,) in mysql.fetch_all("SELECT actor_id FROM reaction ORDER BY actor_id")]


@pytest.mark.parametrize(
    ("in_mysql", "own", "predecessor", "after"),
    [
        (None, "a", "", []),
        ("a", "a", "", [(0, "a")]),
        ("a", "b", "a", [(0, "b")]),
    ],
    ids=["nothing is stored", "the same", "the successor"],
)
def test_commits_are_applied_to_the_present_master_and_to_its_successor(
    plaza: World,
    connect: Connect,
    in_mysql: str | None,
    own: str,
    predecessor: str,
    after: list[tuple[int, str]],
) -> None:
    plaza.add(POST)
    if in_mysql:
        store(in_mysql)
    connect(own, predecessor)
    persist.save(accept(plaza, 7))
    assert (outbox(), recent(), stored()) == ({}, [7], after)
    assert not plaza.queues.messages[ACKNOWLEDGEMENTS]


@pytest.mark.parametrize(
    ("in_mysql", "own", "predecessor"),
    [("b", "a", "before"), ("c", "b", "a"), ("b", "a", "c")],
    ids=["deposed", "one term was skipped", "promoted again after two others"],
)
def test_commits_under_another_term_wait_on_the_queue_of_acknowledgements(
    plaza: World, connect: Connect, in_mysql: str, own: str, predecessor: str
) -> None:
    plaza.add(POST)
    store(in_mysql)
    connect(own, predecessor)
    events = accept(plaza, 7)
    persist.save(events)
    assert (saved(), set(outbox()), recent()) == ([7], {7}, [])
    assert stored() == [(0, in_mysql)], "a deposed process changes nothing"
    connect(in_mysql)
    plaza.queues.drain()
    assert (outbox(), recent()) == ({}, [7])


def test_an_acknowledgement_is_repeated_until_a_consumer_is_connected_to_the_master(
    plaza: World, connect: Connect
) -> None:
    plaza.add(POST)
    store("b")
    connect("a")
    persist.save(accept(plaza, 7))
    [body] = plaza.queues.take(ACKNOWLEDGEMENTS)
    message = decode(ACKNOWLEDGEMENTS, body)
    with pytest.raises(MasterDeposed):
        persist.acknowledge_again([message])
    connect("b")
    persist.acknowledge_again([message])
    assert (outbox(), recent(), total()) == ({}, [7], 1)


def test_a_batch_in_several_transactions_is_postponed_whole(
    plaza: World, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a consumer that applies commits in a thread while it saves the next ones."""
    monkeypatch.setattr(persist, "EVENTS_PER_TRANSACTION", 2)
    plaza.add(POST)
    store("b")
    connect("a")
    events = [event for actor in range(1, 6) for event in accept(plaza, actor)]
    persist.save(events)
    assert (saved(), len(outbox())) == ([1, 2, 3, 4, 5], 5)
    connect("b")
    plaza.queues.drain()
    assert (outbox(), recent()) == ({}, [1, 2, 3, 4, 5])


def test_without_redis_commits_are_postponed(plaza: World, connect: Connect) -> None:
    plaza.add(POST)
    events = accept(plaza, 7)
    connect(None)
    persist.save(events)
    assert (saved(), len(plaza.queues.messages[ACKNOWLEDGEMENTS])) == ([7], 1)


def test_an_import_under_another_term_is_refused_after_its_commit(
    plaza: World, connect: Connect
) -> None:
    plaza.add(POST)
    store("b")
    connect("a")
    with pytest.raises(MasterDeposed):
        persist.save_history([make_event(7, True, BASE_US)])
    assert saved() == [7]


def test_the_masters_of_an_unknown_slot_are_not_trusted(plaza: World, connect: Connect) -> None:
    """Given slots that moved since the sweeper read the cluster."""
    plaza.add(POST)
    store("a")
    connect("a", first_slot=5461)
    persist.save(accept(plaza, 7))
    assert len(plaza.queues.messages[ACKNOWLEDGEMENTS]) == 1


def test_a_commit_deletes_a_load_of_another_term_and_keeps_its_outbox(plaza: World) -> None:
    put(total=1, n=3, newest=[(7, 10)])
    redis.execute("HSET", keys().meta, "term", "0" * 40)
    assert apply(4, 2, [(9, 20, True)]).code == "DROPPED"
    assert meta() == {}
    assert recent() == []
    assert apply(4, 2, [(9, 20, True)]).code == "COLD"


def test_a_successor_replaces_only_the_term_that_it_succeeds(plaza: World) -> None:
    store("c")
    for predecessor, expected in (("a", "c"), ("c", "b")):
        mysql.run_in_transaction(
            partial(mysql_log.succeed_term, first_slot=0, predecessor=predecessor, term="b")
        )
        assert stored() == [(0, expected)]


def test_a_consumer_whose_master_was_deposed_connects_again(plaza: World, connect: Connect) -> None:
    plaza.add(POST)
    events = accept(plaza, 7)
    store("another")
    connect("a")
    before = connections.client()
    persist.save(events)
    assert connections.client() is not before
    assert plaza.queues.take(ACKNOWLEDGEMENTS)
