"""The functions of flash sales, in this process, with the samples of what invokes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from plaza.flash_sales import load_sale, place_order, redis_store
from plaza.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.infra import dead_letters, mysql, redis
from tests.support import sales
from tests.support.call_log import record_call
from tests.support.functions import event, handler
from tests.support.plaza import World

Buried = list[tuple[str, dict[str, Any]]]  # (queue, message)

SAMPLE = 256705178760118273
QUESTION = {
    "shop_id": "5",
    "title": "Dinner for two",
    "price_cents": 1990,
    "stock": 500,
    "opens_at": "2026-11-20T10:00:00Z",
    "closes_at": "2036-11-20T12:00:00Z",
}


@pytest.fixture
def shop(plaza: World) -> World:
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro')")
    return plaza


def ask(name: str, **changes: Any) -> tuple[int, Any, dict[str, str]]:
    """The answer to a sample request, changed."""
    asked = event(f"flash_sales.{name}")
    user_id = changes.pop("user_id", None)
    if "body" in changes:
        changes["body"] = json.dumps(changes["body"])
    headers = changes.pop("headers", {})
    asked |= changes
    if user_id is not None:
        asked["requestContext"]["authorizer"]["lambda"]["user_id"] = str(user_id)
    asked["headers"] |= headers
    answer = handler("api/flash_sales")(asked, None)
    return (
        answer["statusCode"],
        json.loads(answer["body"]),
        {k.lower(): v for k, v in answer["headers"].items()},
    )


def at(name: str, path: str, **parameters: str) -> dict[str, Any]:
    """Another path of the same route."""
    asked = event(f"flash_sales.{name}")
    context = asked["requestContext"]
    context["http"]["path"] = path
    return {"rawPath": path, "pathParameters": parameters, "requestContext": context}


def order(voucher_id: str, user_id: int = 7) -> tuple[int, Any, dict[str, str]]:
    changed = at("order_voucher", f"/vouchers/{voucher_id}/orders", voucher_id=voucher_id)
    return ask("order_voucher", **changed, user_id=user_id)


def read(order_id: str, user_id: int = 7) -> tuple[int, Any, dict[str, str]]:
    changed = at("read_order", f"/orders/{order_id}", order_id=order_id)
    return ask("read_order", **changed, user_id=user_id)


def test_an_admin_offers_a_voucher_and_a_shop_lists_it(shop: World) -> None:
    status, made, _ = ask("offer_voucher")
    assert status == 201
    assert made | QUESTION == made
    assert (made["left"], made["exact"]) == (500, True)
    status, page, _ = ask("list_vouchers")
    assert (status, page) == (200, {"items": [made], "next": None})
    assert sales.read_counts(int(made["id"])) is not None  # it is in Redis before the first click


def test_only_an_admin_offers_and_only_in_a_shop_that_is_there(plaza: World) -> None:
    status, problem, _ = ask("offer_voucher_as_user")
    assert (status, problem["type"].rpartition("/")[2]) == (403, "forbidden")
    assert ask("offer_voucher")[0] == 404
    assert ask("list_vouchers")[0] == 404


def test_a_voucher_is_offered_once_under_one_key(shop: World) -> None:
    key = {"headers": {"idempotency-key": "k1"}}
    _, made, _ = ask("offer_voucher", **key)
    assert ask("offer_voucher", **key)[:2] == (201, made)
    status, problem, _ = ask("offer_voucher", body=QUESTION | {"stock": 1}, **key)
    assert (status, problem["type"].rpartition("/")[2]) == (409, "key-reused")
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
def test_an_offer_that_makes_no_sense_is_400_and_names_the_field(
    shop: World, changed: dict[str, Any], field: str
) -> None:
    status, problem, _ = ask("offer_voucher", body=QUESTION | changed)
    assert (status, problem["type"].rpartition("/")[2]) == (400, "bad-input")
    assert field in json.dumps(problem.get("errors") or problem["detail"])


def test_a_time_with_an_offset_is_the_same_instant(shop: World) -> None:
    body = QUESTION | {"opens_at": "2026-11-20T12:00:00.25+02:00"}
    assert ask("offer_voucher", body=body)[1]["opens_at"] == "2026-11-20T10:00:00.250000Z"


def test_an_order_is_202_then_200_then_decided(shop: World) -> None:
    voucher = ask("offer_voucher")[1]["id"]
    status, made, headers = order(voucher)
    assert status == 202
    assert made == {
        "order_id": made["order_id"],
        "voucher_id": voucher,
        "status": "pending",
        "reason": None,
    }
    assert headers["retry-after"] == "1"  # one order waits
    status, again, headers = order(voucher)
    assert (status, again) == (200, made)
    assert "retry-after" in headers
    assert read(made["order_id"])[:2] == (200, made)
    status, _, headers = read(made["order_id"], user_id=8)
    assert (status, headers["retry-after"]) == (503, "5")
    shop.queues.drain()
    assert read(made["order_id"], user_id=8)[0] == 404
    done = made | {"status": "success"}
    status, found, headers = read(made["order_id"])
    assert (status, found, "retry-after" in headers) == (200, done, False)
    assert order(voucher)[:2] == (200, done)
    assert ask("list_my_orders")[:2] == (200, {"items": [done], "next": None})


def test_refusals_say_which_rule_says_no(shop: World, set_up: Callable[..., None]) -> None:
    def refused(voucher_id: str, user_id: int) -> tuple[int, str]:
        status, problem, _ = order(voucher_id, user_id)
        return status, problem["type"].rpartition("/")[2]

    one = ask("offer_voucher", body=QUESTION | {"stock": 1})[1]["id"]
    later = ask("offer_voucher", body=QUESTION | {"opens_at": "2036-01-01T00:00:00Z"})[1]["id"]
    order(one)
    assert refused(one, 8) == (409, "sold-out")
    assert refused(later, 8) == (409, "not-open")
    assert refused("31", 8) == (404, "not-found")
    assert refused("x", 8) == (404, "not-found")
    set_up(orders_per_s=1)
    many = ask("offer_voucher")[1]["id"]
    answers = [order(many, user_id) for user_id in range(20, 40)]
    crowded = [(problem, headers) for status, problem, headers in answers if status == 429]
    assert crowded
    for problem, headers in crowded:
        assert problem["type"].rpartition("/")[2] == "too-many"
        assert int(headers["retry-after"]) >= 1


def test_a_bad_cursor_is_400(shop: World) -> None:
    for name in ("list_my_orders", "list_vouchers"):
        query = {"queryStringParameters": {"cursor": "x"}, "rawQueryString": "cursor=x"}
        assert ask(name, **query)[0] == 400


# ---------------------------------------------------------------- queue/save_orders and the DLQ


@pytest.fixture
def buried(monkeypatch: pytest.MonkeyPatch) -> Buried:
    """(Queue, message) of each dead letter, which SQS takes."""
    found: Buried = []
    monkeypatch.setattr(
        dead_letters,
        "dead_letter",
        lambda queue, message, error: record_call(found, (queue, message), True),
    )
    return found


def sample_voucher(stock: int = 10) -> None:
    """The voucher of the samples, with its state in Redis."""
    voucher = sales.offer(stock=stock)
    mysql.write("UPDATE voucher SET id = 31 WHERE id = %s", (voucher.id,))
    load_sale.load_sale(31)


def test_a_batch_is_saved_and_a_poisoned_record_goes_to_the_dlq_alone(
    plaza: World, buried: Buried
) -> None:
    sample_voucher()
    save = handler("queue/save_orders")
    assert save(event("save_orders.batch"), None) == {"batchItemFailures": []}
    assert sales.holders(31) == [7, 8, 9]
    assert save(event("save_orders.poison"), None) == {"batchItemFailures": []}
    assert [queue for queue, _ in buried] == [ORDERS.name]
    sales.check(31)


def test_the_dlq_decides_what_was_not_saved_and_buries_what_it_can_not_read(
    plaza: World, buried: Buried
) -> None:
    sample_voucher()
    batch = event("save_orders.batch")
    batch["Records"] = batch["Records"][:1]
    handler("queue/save_orders")(batch, None)
    give_up = handler("queue/decide_dead_orders")
    for _ in range(2):
        assert give_up(event("decide_dead_orders.batch"), None) == {"batchItemFailures": []}
    reasons = {row.order_id: row.reason for row in sales.rows(31).values()}
    assert reasons == {SAMPLE: None, SAMPLE + 1: None}
    give_up(event("decide_dead_orders.poison"), None)
    assert [queue for queue, _ in buried] == [ORDERS_DLQ.name]
    sales.check(31)


def test_an_event_with_the_id_of_another_order_goes_to_the_dlq_alone_and_at_once(
    plaza: World, buried: Buried
) -> None:
    sample_voucher()
    batch = event("save_orders.batch")
    [first, *_] = batch["Records"]
    stray = first | {"messageId": "stray"}
    stray["body"] = json.dumps(json.loads(first["body"]) | {"buyer_id": 77})
    batch["Records"].append(stray)
    assert handler("queue/save_orders")(batch, None) == {"batchItemFailures": []}
    assert buried == [(ORDERS.name, stray)]
    assert sales.holders(31) == [7, 8, 9]
    sales.check(31)


def test_a_shop_that_is_deleted_answers_410_for_what_it_offered(shop: World) -> None:
    voucher = ask("offer_voucher")[1]["id"]
    assert order(voucher)[0] == 202
    assert handler("api/shops")(event("shops.delete_shop"), None)["statusCode"] == 204
    for status, problem, _ in (order(voucher, 8), ask("offer_voucher"), ask("list_vouchers")):
        assert (status, problem["type"].rpartition("/")[2]) == (410, "gone")


# ---------------------------------------------------------------- schedules


def test_the_schedules_recover_and_settle(plaza: World, set_up: Callable[..., None]) -> None:
    set_up(resend_orders_after_s=1)
    voucher = sales.offer()
    plaza.queues.away = True
    place_order.place_order(voucher.id, 7)
    plaza.queues.away = False
    life = redis_store.find_sales([voucher.id])[voucher.id]
    [member] = redis.execute("ZRANGE", redis_store.recovery_key(life), 0, -1)
    redis.execute("ZADD", redis_store.recovery_key(life), 1, member)
    recover = handler("schedule/recover_orders")
    assert recover(event("recover_orders.schedule"), None) == {
        "recovered": 1,
        "vouchers_filtered": 1,
    }
    settle = handler("schedule/finalize_vouchers")
    assert settle(event("finalize_vouchers.schedule"), None) == {"finalized": 0}
