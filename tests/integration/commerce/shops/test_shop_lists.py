"""Shops of a type, and shops by the beginning of their name."""

from __future__ import annotations

from typing import Any

import pytest

from plaza.commerce.shops import lists
from plaza.infra.mysql import mysql, sql
from plaza.infra.redis.token_bucket import TokenBucket
from tests.support.content_api import Reply, as_another_process, ask, counting_work
from tests.support.plaza import World

NAMES = ["Noodle Bar", "noodles & more", "Nook", "100% Soba", "100 Sobas", "Soba_1", "SobaX1"]


@pytest.fixture(autouse=True)
def shops(plaza: World) -> None:
    """Shops 1 to 7; the odd ones have the type 3. Shop 8 is deleted."""
    mysql.write("INSERT INTO shop_type (id, name) VALUES (3, 'Noodles'), (4, 'Bars')")
    rows = [(i, name, 3 if i % 2 else None) for i, name in enumerate(NAMES, 1)]
    for row in rows:
        mysql.write("INSERT INTO shop (id, name, type_id) VALUES (%s, %s, %s)", row)
    mysql.write(
        "INSERT INTO shop (id, name, type_id, deleted_at) VALUES (8, 'Noo', 3, UTC_TIMESTAMP(6))"
    )


def read(path: str) -> Reply:
    return ask("GET", path, user=None, folder="api/shops")


def names(path: str) -> list[str]:
    items: list[dict[str, Any]] = read(path).body["items"]
    return [item["name"] for item in items]


def test_shops_of_a_type_are_listed_newest_first_in_pages() -> None:
    page = read("/shop-types/3/shops?limit=3").body
    assert [item["id"] for item in page["items"]] == ["7", "5", "3"]
    rest = read(f"/shop-types/3/shops?limit=3&cursor={page['next']}").body
    assert ([item["id"] for item in rest["items"]], rest["next"]) == (["1"], None)
    assert read("/shop-types/4/shops").body == {"items": [], "next": None}
    assert read("/shop-types/5/shops").status == 404


def test_a_type_is_read() -> None:
    assert read("/shop-types/3").body == {"id": "3", "name": "Noodles", "icon": None}
    assert read("/shop-types/5").status == 404


def test_a_search_finds_names_by_their_beginning_in_any_case() -> None:
    assert names("/shops/search?name=noo") == ["Noodle Bar", "noodles & more", "Nook"]
    assert names("/shops/search?name=noo&limit=1") == ["Noodle Bar"]
    assert names("/shops/search?name=NOO&type=3") == ["Noodle Bar", "Nook"]
    assert names("/shops/search?name=bar") == []
    assert read("/shops/search?name=a&type=5").status == 404


@pytest.mark.parametrize(
    ("prefix", "result"),
    [("100%", ["100% Soba"]), ("soba_", ["Soba_1"]), ("\\", []), ("'", []), ("%", []), ("_", [])],
)
def test_wildcards_stand_for_themselves(prefix: str, result: list[str]) -> None:
    assert [shop.name for shop in lists.search(prefix, None, 10)] == result


@pytest.mark.parametrize("query", ["", "name=", "name=\n", "name=" + "a" * 201, "type=3"])
def test_an_invalid_search_is_refused(query: str) -> None:
    assert read(f"/shops/search?{query}").slug == "invalid-request"


@pytest.mark.parametrize(
    ("prefix", "result"),
    [
        ("🍣", ["🍣 Sushi Bar"]),
        ("🍺", ["🍺 Beer Garden"]),
        ("CAFÉ", ["Café"]),
        ("cafe", ["Cafe"]),
        ("\uff21", ["\uff21bc"]),
        ("abc", ["ABC"]),
        ("STRASS", []),
        ("straß", ["Straße"]),
    ],
)
def test_a_search_ignores_case_only(prefix: str, result: list[str]) -> None:
    """Given names that the default collations of MySQL and MariaDB take for equal ones."""
    different = ["🍣 Sushi Bar", "🍺 Beer Garden", "Café", "Cafe", "\uff21bc", "ABC", "Straße"]
    for shop_id, name in enumerate(different, 20):
        mysql.write("INSERT INTO shop (id, name) VALUES (%s, %s)", (shop_id, name))
    assert [shop.name for shop in lists.search(prefix, None, 10)] == result


@pytest.mark.parametrize(
    ("of_type", "index"), [(None, "by_search_name"), (3, "by_type_and_search_name")]
)
def test_a_search_reads_an_index_in_its_order(of_type: int | None, index: str) -> None:
    where = "" if of_type is None else f" AND type_id = {of_type}"
    [plan] = mysql.fetch_all(
        f"EXPLAIN SELECT id FROM shop FORCE INDEX ({index}) WHERE deleted_at IS NULL{where}"
        " AND search_name LIKE CONCAT(LOWER(%s COLLATE utf8mb4_bin), '%%')"
        " ORDER BY search_name, id LIMIT 10",
        (sql.escape_like("noo"),),
    )
    assert index in plan
    assert "filesort" not in str(plan)


def test_lists_that_mysql_reads_are_limited_and_cached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read("/shop-types/3/shops")
    as_another_process()
    monkeypatch.setattr(lists, "_budget", TokenBucket(0.0001, 5, clock=lambda: 0.0))
    statuses = [read(f"/shops/search?name={'a' * n}").status for n in range(1, 11)]
    assert statuses == [200] * 5 + [503] * 5
    with counting_work() as work:
        assert read("/shops/search?name=a").status == 200
    assert work.statements == 0
