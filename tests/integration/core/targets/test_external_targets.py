"""Targets of the app: created once, with an owner that never changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from plaza.core.reactions import LIKE, Target, queries, react
from plaza.core.reactions.model import TargetDeleted, TargetMissing
from plaza.core.targets import Existence, external_targets, lookup, markers, types
from plaza.core.targets.external_targets import (
    Created,
    ExternalTarget,
    NumberTaken,
    create_all,
)
from plaza.core.targets.target_ids import parse_id
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.errors import NotFound
from tests.support.content_api import counting_work
from tests.support.plaza import World
from tests.support.stores import counter

ARTICLE = ExternalTarget("article", "8f3a", owner_id=7, url="https://app.example/8f3a")


def test_a_created_target_is_live_although_it_was_looked_up_before(plaza: World) -> None:
    assert lookup.find(*ARTICLE.key) is Existence.MISSING
    assert create_all([ARTICLE]) == [Created.LIVE]
    assert lookup.find(*ARTICLE.key) is Existence.LIVE


def test_a_creation_that_is_repeated_changes_nothing_but_the_url(plaza: World) -> None:
    create_all([ARTICLE])
    moved = ARTICLE._replace(url="https://app.example/new")
    assert create_all([moved, ARTICLE._replace(external_id="8F3A"), moved]) == [Created.LIVE] * 3
    # Ids are compared by bytes; without a URL, a repeat keeps the one that is stored.
    assert create_all([ARTICLE._replace(url=None)]) == [Created.LIVE]
    rows = mysql.fetch_all("SELECT external_id, owner_id, url FROM external_target ORDER BY url")
    assert rows == [("8F3A", 7, ARTICLE.url), ("8f3a", 7, "https://app.example/new")]


@pytest.mark.parametrize("owner_id", [None, 8])
def test_an_owner_is_fixed(plaza: World, owner_id: int | None) -> None:
    create_all([ARTICLE])
    other = ARTICLE._replace(owner_id=owner_id, url="https://else.example")
    assert create_all([other]) == [Created.OWNER_FIXED]
    assert mysql.fetch_all("SELECT owner_id, url FROM external_target") == [(7, ARTICLE.url)]


def test_a_deleted_target_is_not_made_again(plaza: World) -> None:
    create_all([ARTICLE])
    mysql.write("UPDATE external_target SET deleted_at = NOW(6)")
    assert create_all([ARTICLE]) == [Created.DELETED]
    assert lookup.find_in_mysql(*ARTICLE.key) is Existence.DELETED


def test_a_creation_that_is_refused_leaves_no_live_marker(plaza: World) -> None:
    create_all([ARTICLE])
    external_targets.delete(ARTICLE.key, ARTICLE.external_id)
    redis.execute("DEL", markers.existence_key(*ARTICLE.key))
    assert create_all([ARTICLE]) == [Created.DELETED]
    with pytest.raises(TargetDeleted):
        react.react(LIKE, Target(*ARTICLE.key), 7, True, external_id=ARTICLE.external_id)


def test_two_ids_of_one_number_are_a_conflict(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_targets, "number_of", lambda *_: 5)
    create_all([ARTICLE])
    assert create_all([ARTICLE._replace(external_id="8f3b")]) == [Created.NUMBER_TAKEN]
    assert mysql.fetch_all("SELECT external_id FROM external_target") == [("8f3a",)]


def test_64_callers_that_create_one_target_at_once_make_one_row(plaza: World) -> None:
    with ThreadPoolExecutor(16) as threads:
        results = list(threads.map(lambda _: create_all([ARTICLE]), range(64)))
    assert results == [[Created.LIVE]] * 64
    assert mysql.fetch_all("SELECT COUNT(*) FROM external_target") == [(1,)]


@pytest.mark.parametrize(
    ("target_type", "text"),
    [("article", text) for text in ("", "-a", "a b", "a/b", "é", "a" * 65, "a\n")]
    + [("clip", "12a"), ("clip", "")],
)
def test_a_text_that_is_no_id_is_not_found(target_type: str, text: str) -> None:
    with pytest.raises(NotFound):
        parse_id(target_type, text)


def test_an_id_has_a_number_that_other_ids_and_types_do_not_have() -> None:
    texts = ["a" * 64, "a" * 63 + "b", "A" * 64, "7", "07", "7:8", "8f3a.b_c-d"]
    numbers = {parse_id("article", text) for text in texts}
    assert len(numbers) == len(texts)
    assert parse_id("clip", "7") != parse_id("article", "7")
    assert all(0 <= number < 2**63 for number in numbers)
    assert types.EXTERNAL.keys() == {"article", "clip"}


CLIP = Target("clip", parse_id("clip", "12"))


def test_a_first_reaction_creates_its_target_once(plaza: World) -> None:
    with pytest.raises(TargetMissing):
        react.react(LIKE, CLIP, 7, False, external_id="12")
    for actor_id in (7, 8, 8):
        react.react(LIKE, CLIP, actor_id, True, external_id="12")
    plaza.queues.drain()
    assert mysql.fetch_all("SELECT external_id, owner_id FROM external_target") == [("12", None)]
    assert queries.read_counts([(LIKE, CLIP)], 8)[0][0].total == 2
    assert counter(CLIP) == 2


def test_a_reaction_creates_no_target_that_servers_create(plaza: World) -> None:
    with pytest.raises(TargetMissing):
        react.react(LIKE, Target(*ARTICLE.key), 7, True, external_id="8f3a")
    create_all([ARTICLE])
    assert react.react(LIKE, Target(*ARTICLE.key), 7, True, external_id="8f3a").total == 1
    plaza.queues.drain()
    owner = "SELECT likes_received_total FROM user_counter WHERE user_id = 7"
    assert mysql.fetch_all(owner) == [(1,)]


def test_another_id_of_the_number_is_a_conflict_before_the_gate(plaza: World) -> None:
    react.react(LIKE, CLIP, 7, True, external_id="12")
    for cached in (True, False):
        if not cached:
            redis.execute("DEL", markers.existence_key(*CLIP))
        with pytest.raises(NumberTaken):
            react.react(LIKE, CLIP, 8, True, external_id="13")
    assert react.react(LIKE, CLIP, 9, True, external_id="12").total == 2


def test_a_like_of_a_loaded_target_is_one_round_trip(plaza: World) -> None:
    react.react(LIKE, CLIP, 7, True, external_id="12")
    with counting_work() as work:
        react.react(LIKE, CLIP, 8, True, external_id="12")
    assert (work.round_trips, work.statements) == (1, 0)
