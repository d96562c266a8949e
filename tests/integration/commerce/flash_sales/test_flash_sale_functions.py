"""The functions of flash sales, run in this process with sample events."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from plaza.commerce.flash_sales import (
    codes,
    load_sale,
    place_order,
    redis_keys,
    redis_sales,
    withdraw_vouchers,
)
from plaza.commerce.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.infra.mysql import mysql
from plaza.infra.mysql.sql import from_us
from plaza.infra.queues import dead_letters
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.call_log import record_call
from tests.support.consumers import statements
from tests.support.functions import authorization, event, handler
from tests.support.plaza import World

DeadLetters = list[tuple[str, dict[str, Any]]]  # (queue, message)

SAMPLE = 256705178760118273
VOUCHER = {
    "shop_id": "5",
    "title": "Dinner for two",
    "price_cents": 1990,
    "stock": 500,
    "opens_at": "2026-11-20T10:00:00.000000Z",
    "closes_at": "2096-11-20T12:00:00.000000Z",
}


@pytest.fixture
def shop(plaza: World) -> World:
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro')")
    return plaza


def call(name: str, **changes: Any) -> tuple[int, Any, dict[str, str]]:
    """Return (status, body, headers) for a sample request with changes."""
    request = event(f"flash_sales.{name}")
    user_id = changes.pop("user_id", None)
    if "body" in changes:
        changes["body"] = json.dumps(changes["body"])
    headers = changes.pop("headers", {})
    request |= changes
    if user_id is not None:
        request["headers"] |= authorization(user_id)
    request["headers"] |= headers
    response = handler("api/flash_sales")(request, None)
    return (
        response["statusCode"],
        json.loads(response["body"]),
        {k.lower(): v for k, v in response["headers"].items()},
    )


def with_path(name: str, path: str, **parameters: str) -> dict[str, Any]:
    """Return the changes that give a sample request another path of its route."""
    request = event(f"flash_sales.{name}")
    context = request["requestContext"]
    context["http"]["path"] = path
    return {"rawPath": path, "pathParameters": parameters, "requestContext": context}


def order(voucher_id: str, user_id: int = 7) -> tuple[int, Any, dict[str, str]]:
    changed = with_path("place_order", f"/vouchers/{voucher_id}/orders", voucher_id=voucher_id)
    return call("place_order", **changed, user_id=user_id)


def read(order_id: str, user_id: int = 7) -> tuple[int, Any, dict[str, str]]:
    changed = with_path("get_order", f"/orders/{order_id}", order_id=order_id)
    return call("get_order", **changed, user_id=user_id)


def test_an_admin_creates_a_voucher_and_its_shop_lists_it(shop: World) -> None:
    status, created, _ = call("create_voucher")
    assert status == 201
    assert created | VOUCHER == created
    assert (created["left"], created["exact"]) == (500, True)
    status, page, _ = call("list_vouchers")
    assert (status, page) == (200, {"items": [created], "next": None})
    assert sales.read_counts(int(created["id"])) is not None  # loaded before the first order


def test_the_status_of_a_sale_can_be_cached_for_a_second(shop: World) -> None:
    _, created, _ = call("create_voucher")
    path = f"/vouchers/{created['id']}/status"
    status, body, headers = call(
        "get_sale_status", **with_path("get_sale_status", path, voucher_id=created["id"])
    )
    assert (status, body["left"], headers["cache-control"]) == (200, 500, "public, max-age=1")
    assert body["phase"] in ("upcoming", "open")


def test_only_an_admin_creates_vouchers_and_only_for_an_existing_shop(plaza: World) -> None:
    status, problem, _ = call("create_voucher_as_user")
    assert (status, problem["type"].rpartition("/")[2]) == (403, "forbidden")
    assert call("create_voucher")[0] == 404
    assert call("list_vouchers")[0] == 404


def test_a_voucher_is_created_once_per_idempotency_key(shop: World) -> None:
    key = {"headers": {"idempotency-key": "k1"}}
    _, created, _ = call("create_voucher", **key)
    assert call("create_voucher", **key)[:2] == (201, created)
    status, problem, _ = call("create_voucher", body=VOUCHER | {"stock": 1}, **key)
    assert (status, problem["type"].rpartition("/")[2]) == (409, "idempotency-key-reused")
    assert mysql.fetch_all("SELECT COUNT(*) FROM voucher") == [(1,)]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"stock": 0}, "stock"),
        ({"stock": 10_000_001}, "stock"),
        ({"stock": "5"}, "stock"),
        ({"stock": 1.5}, "stock"),
        ({"price_cents": -1}, "price_cents"),
        ({"price_cents": 19.9}, "price_cents"),
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"shop_id": 5}, "shop_id"),
        ({"opens_at": "2026-11-20T10:00:00"}, "opens_at"),
        ({"opens_at": 1_700_000_000}, "opens_at"),
        ({"opens_at": "1700000000"}, "opens_at"),
        ({"opens_at": "2026-13-20T10:00:00Z"}, "opens_at"),
        ({"opens_at": None}, "opens_at"),
        ({"opens_at": "soon"}, "opens_at"),
        ({"opens_at": "0001-01-01T00:00:00Z"}, "opens_at"),
        ({"closes_at": "9999-12-31T23:59:59Z"}, "closes_at"),
        ({"closes_at": "2026-11-20T10:00:00Z"}, "closes_at"),
        ({"opens_at": "2001-01-01T00:00:00Z", "closes_at": "2002-01-01T00:00:00Z"}, "closes_at"),
        ({"extra": 1}, "extra"),
    ],
    ids=str,
)
def test_an_invalid_voucher_is_400_and_names_the_field(
    shop: World, changed: dict[str, Any], field: str
) -> None:
    status, problem, _ = call("create_voucher", body=VOUCHER | changed)
    assert (status, problem["type"].rpartition("/")[2]) == (400, "invalid-request")
    assert field in json.dumps(problem.get("errors") or problem["detail"])


def test_a_time_with_an_offset_is_the_same_instant(shop: World) -> None:
    body = VOUCHER | {"opens_at": "2026-11-20T12:00:00.25+02:00"}
    assert call("create_voucher", body=body)[1]["opens_at"] == "2026-11-20T10:00:00.250000Z"


def test_an_order_is_202_then_200_then_decided(shop: World) -> None:
    voucher = call("create_voucher")[1]["id"]
    status, created, headers = order(voucher)
    assert status == 202
    assert created == {
        "order_id": created["order_id"],
        "voucher_id": voucher,
        "status": "pending",
        "reason": None,
    }
    assert headers["retry-after"] == "1"  # one order is queued
    status, again, headers = order(voucher)
    assert (status, again) == (200, created)
    assert "retry-after" in headers
    status, body, _ = read(created["order_id"])
    assert (status, body) == (200, body | created)
    status, _, headers = read(created["order_id"], user_id=8)
    assert (status, headers["retry-after"]) == (503, "5")
    shop.queues.drain()
    assert read(created["order_id"], user_id=8)[0] == 404
    completed = created | {"status": "success"}
    status, body, headers = read(created["order_id"])
    assert (status, body, "retry-after" in headers) == (200, body | completed, False)
    assert order(voucher)[:2] == (200, completed)
    assert call("list_my_orders")[:2] == (200, {"items": [body], "next": None})


def test_a_refused_order_names_its_reason(shop: World, set_up: Callable[..., None]) -> None:
    def refusal(voucher_id: str, user_id: int) -> tuple[int, str]:
        status, problem, _ = order(voucher_id, user_id)
        return status, problem["type"].rpartition("/")[2]

    item = call("create_voucher", body=VOUCHER | {"stock": 1})[1]["id"]
    later = call("create_voucher", body=VOUCHER | {"opens_at": "2096-01-01T00:00:00Z"})[1]["id"]
    order(item)
    assert refusal(item, 8) == (409, "sold-out")
    assert refusal(later, 8) == (409, "not-open")
    assert refusal("31", 8) == (404, "not-found")
    assert refusal("x", 8) == (404, "not-found")
    set_up(orders_per_s=1)
    many = call("create_voucher")[1]["id"]
    responses = [order(many, user_id) for user_id in range(20, 40)]
    limited = [(problem, headers) for status, problem, headers in responses if status == 429]
    assert limited
    for problem, headers in limited:
        assert problem["type"].rpartition("/")[2] == "too-many-requests"
        assert int(headers["retry-after"]) >= 1


def test_a_bad_cursor_is_400(shop: World) -> None:
    for name in ("list_my_orders", "list_my_waitlists", "list_vouchers"):
        query = {"queryStringParameters": {"cursor": "x"}, "rawQueryString": "cursor=x"}
        assert call(name, **query)[0] == 400


# ---------------------------------------------------------------- queue/save_orders and the DLQ


@pytest.fixture
def dead_lettered(monkeypatch: pytest.MonkeyPatch) -> DeadLetters:
    """Collect (queue, message) of each dead letter, which SQS accepts."""
    results: DeadLetters = []
    monkeypatch.setattr(
        dead_letters,
        "dead_letter",
        lambda queue, message, error: record_call(results, (queue, message), True),
    )
    return results


def sample_voucher(stock: int = 10) -> None:
    """The voucher of the samples, with its state in Redis."""
    voucher = sales.offer(stock=stock)
    mysql.write("UPDATE voucher SET id = 31 WHERE id = %s", (voucher.id,))
    load_sale.load_sale(31)


def test_a_batch_is_stored_and_an_unreadable_record_alone_is_dead_lettered(
    plaza: World, dead_lettered: DeadLetters
) -> None:
    sample_voucher()
    save = handler("queue/save_orders")
    assert save(event("save_orders.batch"), None) == {"batchItemFailures": []}
    assert sales.holders(31) == [7, 8, 9]
    assert save(event("save_orders.poison"), None) == {"batchItemFailures": []}
    assert [queue for queue, _ in dead_lettered] == [ORDERS.name]
    sales.check(31)


def test_the_dlq_consumer_decides_orders_and_dead_letters_unreadable_records(
    plaza: World, dead_lettered: DeadLetters
) -> None:
    sample_voucher()
    batch = event("save_orders.batch")
    batch["Records"] = batch["Records"][:1]
    handler("queue/save_orders")(batch, None)
    decide = handler("queue/decide_dead_orders")
    for _ in range(2):
        assert decide(event("decide_dead_orders.batch"), None) == {"batchItemFailures": []}
    reasons = {row.order_id: row.reason for row in sales.rows(31).values()}
    assert reasons == {SAMPLE: None, SAMPLE + 1: None}
    decide(event("decide_dead_orders.poison"), None)
    assert [queue for queue, _ in dead_lettered] == [ORDERS_DLQ.name]
    sales.check(31)


def test_an_event_with_the_id_of_another_order_alone_is_dead_lettered_at_once(
    plaza: World, dead_lettered: DeadLetters
) -> None:
    sample_voucher()
    batch = event("save_orders.batch")
    [first, *_] = batch["Records"]
    stray = first | {"messageId": "stray"}
    stray["body"] = json.dumps(json.loads(first["body"]) | {"buyer_id": 77})
    batch["Records"].append(stray)
    assert handler("queue/save_orders")(batch, None) == {"batchItemFailures": []}
    assert dead_lettered == [(ORDERS.name, stray)]
    assert sales.holders(31) == [7, 8, 9]
    sales.check(31)


def test_orders_and_vouchers_of_a_deleted_shop_are_410(shop: World) -> None:
    voucher = call("create_voucher")[1]["id"]
    assert order(voucher)[0] == 202
    assert handler("api/shops")(event("shops.delete_shop"), None)["statusCode"] == 204
    for status, problem, _ in (order(voucher, 8), call("create_voucher"), call("list_vouchers")):
        assert (status, problem["type"].rpartition("/")[2]) == (410, "gone")


# ---------------------------------------------------------------- schedules


def test_the_schedules_recover_and_finalize(plaza: World, set_up: Callable[..., None]) -> None:
    set_up(resend_orders_after_s=1)
    voucher = sales.offer()
    plaza.queues.away = True
    place_order.place_order(voucher.id, 7)
    plaza.queues.away = False
    sale = redis_sales.find_sales([voucher.id])[voucher.id]
    [entry] = redis.execute("LRANGE", redis_keys.recovery_key(sale), 0, -1)
    reserved_long_ago = f"{entry.rpartition(':')[0]}:1"
    redis.execute("LSET", redis_keys.recovery_key(sale), 0, reserved_long_ago)
    recover = handler("schedule/recover_orders")
    completed = recover(event("recover_orders.schedule"), None)
    assert completed["vouchers_filtered"] == 1
    assert completed["recovered"] in (1, 2), "decided from MySQL, and perhaps sent again before"
    finalize = handler("schedule/finalize_vouchers")
    assert finalize(event("finalize_vouchers.schedule"), None) == {"finalized": 0}


# ---------------------------------------------------------------- orders that can be read


def test_an_order_has_its_times_its_voucher_and_its_shop(shop: World) -> None:
    _, voucher, _ = call("create_voucher", body=VOUCHER | {"expires_at": "2097-01-01T00:00:00Z"})
    _, placed, _ = order(voucher["id"])
    expected = {
        "title": "Dinner for two",
        "price_cents": 1990,
        "currency": "EUR",
        "expires_at": "2097-01-01T00:00:00.000000Z",
        "shop": {"id": "5", "name": "Bistro"},
    }
    status, pending, headers = read(placed["order_id"])
    assert (status, pending["status"], pending["voucher"]) == (200, "pending", expected)
    assert (pending["decided_at"], pending["used_at"]) == (None, None)
    assert "retry-after" in headers
    shop.queues.drain()
    _, decided, headers = read(placed["order_id"])
    assert decided == pending | {"status": "success", "decided_at": decided["decided_at"]}
    placed_at, decided_at = (
        datetime.fromisoformat(decided[name]) for name in ("created_at", "decided_at")
    )
    assert placed_at <= decided_at
    assert "retry-after" not in headers
    assert call("list_my_orders")[1] == {"items": [decided], "next": None}
    code = codes.issue_code(int(placed["order_id"]), 7)
    used = codes.redeem_code(int(voucher["id"]), code, 1)
    _, read_again, _ = read(placed["order_id"])
    assert from_us(used.used_us) == datetime.fromisoformat(read_again["used_at"])
    assert read_again == decided | {"status": "used", "used_at": read_again["used_at"]}


def test_orders_of_a_deleted_shop_still_have_its_name(shop: World) -> None:
    _, voucher, _ = call("create_voucher")
    order(voucher["id"])
    shop.queues.drain()
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6)")
    [item] = call("list_my_orders")[1]["items"]
    assert item["voucher"]["shop"] == {"id": "5", "name": "Bistro"}


def test_an_order_that_is_polled_costs_no_statement_for_its_voucher(shop: World) -> None:
    _, voucher, _ = call("create_voucher")
    _, placed, _ = order(voucher["id"])
    read(placed["order_id"])
    before = statements()
    read(placed["order_id"])
    assert statements() - before == 1, "the question itself"


def test_a_page_of_orders_costs_the_same_for_any_number_of_vouchers(shop: World) -> None:
    costs = []
    for count in (1, 6):
        for _ in range(count):
            _, voucher, _ = call("create_voucher")
            order(voucher["id"])
        shop.queues.drain()
        clear_caches()
        before = statements()
        _, page, _ = call("list_my_orders")
        costs.append(statements() - before)
    assert len(page["items"]) == 7
    assert costs[0] == costs[1]


def test_while_mysql_is_away_an_order_is_read_without_its_voucher(
    shop: World, mysql_away: Away
) -> None:
    _, voucher, _ = call("create_voucher")
    _, placed, _ = order(voucher["id"])
    clear_caches()
    with mysql_away():
        status, pending, _ = read(placed["order_id"])
    assert (status, pending["status"], pending["voucher"]) == (200, "pending", None)
    assert read(placed["order_id"])[1]["voucher"]["title"] == "Dinner for two"


def by_ids(*ids: str) -> list[str]:
    status, page, _ = call("list_vouchers_by_id", queryStringParameters={"ids": ",".join(ids)})
    assert (status, page["next"]) == (200, None)
    return [item["id"] for item in page["items"]]


def test_vouchers_are_listed_by_id_in_that_order(shop: World) -> None:
    first, second, withdrawn = (call("create_voucher")[1] for _ in range(3))
    withdraw_vouchers.withdraw_voucher(int(withdrawn["id"]), 1)
    order(second["id"])
    asked = [second["id"], "99", withdrawn["id"], first["id"], second["id"]]
    assert by_ids(*asked) == [second["id"], first["id"]]
    _, page, _ = call("list_vouchers_by_id", queryStringParameters={"ids": second["id"]})
    assert page["items"] == [second | {"left": 499}]


def test_a_hundred_vouchers_by_id_cost_one_statement_and_missing_ones_none(shop: World) -> None:
    ids = [call("create_voucher")[1]["id"] for _ in range(3)]
    missing = [str(i) for i in range(1, 98)]
    clear_caches()
    before = statements()
    assert by_ids(*ids, *missing) == ids
    assert statements() - before == 2, "the vouchers, and the question itself"
    clear_caches()
    before = statements()
    assert by_ids(*missing) == []
    assert statements() - before == 1, "Redis has their absence"
    assert (
        call("list_vouchers_by_id", queryStringParameters={"ids": ",".join(["7"] * 101)})[0] == 400
    )
