"""The number of a shop's reviews and the sum of their scores: exact, compared and repaired."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from local.audit.compare import AuditReport, compare
from local.audit.stores import read_mysql_state, read_redis_state
from local.stack.servers import connect_mysql
from plaza.commerce.shops import queries
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches
from plaza.social.shop_scores import ShopCounter, mysql_store
from plaza.social.shop_scores import totals as shop_totals
from tests.integration.conftest import Away
from tests.support.content_api import REVIEW, ask
from tests.support.interleave import run_after_statement
from tests.support.plaza import World
from tests.support.reconciliations import findings_of, run

SHOP = 5


@pytest.fixture
def shop(plaza: World) -> World:
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro'), (6, 'Bakery')")
    return plaza


def review(user: int, score: int, shop_id: int = SHOP) -> str:
    reply = ask("POST", f"/shops/{shop_id}/reviews", REVIEW | {"score": score}, user=user)
    assert reply.status == 201
    return str(reply.body["id"])


def shown(shop_id: int = SHOP, **options: Any) -> tuple[Any, ...]:
    body = ask("GET", f"/shops/{shop_id}", folder="api/shops", **options).body
    return body["reviews"], body["score_total"], body["average_score"]


def stored() -> list[tuple[int, int]]:
    return list(mysql.fetch_all("SELECT reviews_total, score_total FROM shop_counter"))


def test_a_shop_shows_its_reviews_and_their_average_at_once(shop: World) -> None:
    assert shown() == (0, 0, None)
    first = review(7, 5)
    assert shown() == (1, 5, 5.0)
    review(8, 4)
    review(9, 4)
    assert shown() == (3, 13, 4.33)
    assert ask("DELETE", f"/reviews/{first}").status == 204
    assert shown() == (2, 8, 4.0)
    assert ask("DELETE", f"/reviews/{first}").status == 410
    assert stored() == [(2, 8)]
    assert shown(6) == (0, 0, None)


def test_a_counter_begins_as_a_count_of_what_is_there(shop: World) -> None:
    for user, score in ((7, 5), (8, 2)):
        review(user, score)
    mysql.write("DELETE FROM shop_counter")  # as before the table existed
    redis.execute("FLUSHALL")
    assert shown() == (2, 7, 3.5), "the first reader counts"
    assert ask("DELETE", f"/reviews/{review(8, 4, 6)}", user=8).status == 204
    mysql.write("DELETE FROM shop_counter")
    assert shown(6) == (0, 0, None), "a deleted review does not count"
    review(9, 1)
    assert (3, 8) in stored(), "the first writer counts, its own review once"
    assert shown() == (3, 8, 2.67)


def test_two_first_reviews_at_once_are_counted_twice(
    shop: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a review that is stored after the other one has found no counter."""
    add_review = (
        "INSERT INTO content (content_type, content_id, author_id, parent_id, score)"
        " VALUES ('review', %s, 8, 5, 4)"
    )
    with closing(connect_mysql(mysql_url)) as other, other.cursor() as of_other:

        def store_the_other() -> None:
            of_other.execute(add_review, (12,))
            of_other.execute("INSERT INTO shop_counter VALUES (5, 1, 4)")

        def store(cursor: Cursor) -> None:
            cursor.execute(add_review, (11,))
            mysql_store.add(cursor, SHOP, ShopCounter(1, 4))

        run_after_statement(monkeypatch, store_the_other, number=2)
        mysql.run_in_transaction(store)
    assert stored() == [(2, 8)]


SLOT_DAMAGES = {
    "missing": "DELETE FROM review_slot",
    "left over": "INSERT INTO review_slot VALUES (5, 9, 0, 4711)",
    "of a deleted review": "INSERT INTO review_slot SELECT 5, 8, 0, content_id FROM content"
    " WHERE deleted_at IS NOT NULL",
}


@pytest.mark.parametrize("damage", SLOT_DAMAGES)
def test_a_wrong_slot_of_a_review_is_found_and_repaired(shop: World, damage: str) -> None:
    made, deleted = review(7, 5), review(8, 2)
    assert ask("DELETE", f"/reviews/{deleted}", user=8).status == 204
    shop.queues.drain()
    assert run(shop).differing == 0
    mysql.write(SLOT_DAMAGES[damage])
    wrong = {"missing": made, "left over": "4711"}.get(damage, deleted)
    assert findings_of(run(shop)) == {("slot", "slot", f"review:{wrong}")}
    assert ask("POST", "/shops/5/reviews", REVIEW | {"score": 5}, user=7).status == 409
    review(9, 1)
    assert run(shop).differing == 0


def test_a_hidden_review_still_counts(shop: World) -> None:
    hidden = review(7, 5)
    path = f"/ops/reviews/{hidden}/hidden"
    assert ask("PUT", path, role="admin", folder="api/moderation").status < 300
    assert shown() == (1, 5, 5.0)


def test_a_failed_review_is_not_counted(shop: World) -> None:
    review(7, 5)
    assert ask("POST", f"/shops/{SHOP}/reviews", REVIEW, user=7).status == 409
    assert stored() == [(1, 5)]


def test_an_anonymous_reader_of_a_hot_shop_costs_no_round_trip_for_it(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        shown(user=None)
    monkeypatch.setattr(queries, "_find_page", lambda *_: pytest.fail("it was read again"))
    assert shown(user=None) == (0, 0, None)


def test_while_mysql_is_unavailable_a_shop_is_shown_without_them(
    shop: World, mysql_away: Away
) -> None:
    shown()
    redis.execute("UNLINK", shop_totals.key(SHOP))
    with mysql_away():
        assert shown() == (None, None, None)
    clear_caches()
    assert shown() == (0, 0, None)


def damage(reviews: int, score: int) -> None:
    review(7, 5)
    mysql.write(
        "UPDATE shop_counter SET reviews_total = reviews_total + %s,"
        " score_total = score_total + %s",
        (reviews, score),
    )


@pytest.mark.parametrize(("reviews", "score"), [(1, 5), (-1, 0), (0, -3)])
def test_drift_of_a_counter_is_found_and_repaired(shop: World, reviews: int, score: int) -> None:
    damage(reviews, score)
    assert shown()[:2] == (1 + reviews, 5 + score)
    report = run(shop)
    assert report.reason_counts == {"counter": sum(1 for n in (reviews, score) if n)}
    assert report.is_resolved
    assert stored() == [(1, 5)]
    assert shown() == (1, 5, 5.0)
    assert run(shop).differing == 0


def test_the_audit_reads_scores_and_numbers_of_reviews(
    shop: World, mysql_url: str, redis_url: str
) -> None:
    def audit() -> AuditReport:
        return compare(read_mysql_state(mysql_url), read_redis_state(redis_url), {})

    review(7, 5)
    review(8, 3)
    clean = audit()
    assert (clean.counters["reviews"].rows, clean.counters["scores"].counters) == (2, 8)
    assert clean.drift == 0
    mysql.write("UPDATE shop_counter SET score_total = 9")
    assert audit().drift == 1
    [difference] = [d for d in audit().differences if "shop" in str(d)]
    assert str(difference).startswith("reviews and scores of shop 5")
