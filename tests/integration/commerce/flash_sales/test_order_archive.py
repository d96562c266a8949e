"""Final orders of closed months move to the archive, and each can be read as before."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pymysql.constants import ER
from pymysql.err import OperationalError

from local.audit import vouchers as audited_vouchers
from local.audit.orders import find_reused_ids, read_orders
from local.stack.servers import connect_mysql
from plaza.commerce.flash_sales import (
    archive_orders,
    cancel_order,
    mysql_archive,
    mysql_orders,
    persist,
    queries,
)
from plaza.commerce.flash_sales import s3_archive as order_objects
from plaza.commerce.flash_sales.model import (
    CANCELLED,
    ArchivedOrder,
    ArchiveUnreadable,
    NotCancellable,
    Order,
    OrderEvent,
    OrderMissing,
)
from plaza.infra.aws import objects
from plaza.infra.derived import ids
from plaza.infra.mysql import mysql
from plaza.infra.runtime.process import clear_caches
from plaza.operate.accounts import export
from tests.support.archives import BUCKET, s3
from tests.support.call_log import record_call
from tests.support.failures import failing
from tests.support.interleave import run_after_statement
from tests.support.logs import read_log
from tests.support.plaza import World

__all__ = ["s3"]

TODAY = date(2026, 11, 21)
OVER, UNLIMITED, RUNNING = 41, 42, 43  # vouchers: expired; without an end; not finalized
BUYERS = range(101, 108)


@pytest.fixture(autouse=True)
def _small_objects(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_orders, "ORDERS_PER_OBJECT", 4)
    monkeypatch.setattr(archive_orders, "_ORDERS_PER_TRANSACTION", 2)


def id_in(month: int, serial: int) -> int:
    return ids.first_id_at(int(datetime(2026, month, 15, tzinfo=UTC).timestamp())) + serial


def add_voucher(voucher_id: int, finalized: bool, expires: str | None, sold: int) -> None:
    mysql.write(
        "INSERT INTO voucher (id, shop_id, title, price_cents, initial_stock, stock, opens_at,"
        " closes_at, created_by, finalized_at, expires_at) VALUES (%s, 5, 'Dinner', 1, 100, %s,"
        " '2026-07-01', '2026-07-02', 1, %s, %s)",
        (voucher_id, 100 - sold, "2026-07-03" if finalized else None, expires),
    )


def add_order(order_id: int, voucher_id: int, buyer_id: int, outcome: str) -> None:
    """Insert an order: ``used``, ``unused`` or the reason of a failure."""
    success = outcome in ("used", "unused")
    used_at = "2026-07-20 18:04:09.123456" if outcome == "used" else None
    mysql.write(
        "INSERT INTO voucher_order (order_id, voucher_id, buyer_id, holder_id, reason, request_id,"
        " decided_at, used_at, used_by) VALUES (%s, %s, %s, %s, %s, 'request-1',"
        " '2026-07-01 10:00:00.5', %s, %s)",
        (
            order_id,
            voucher_id,
            buyer_id,
            buyer_id if success else None,
            None if success else outcome,
            used_at,
            1 if used_at else None,
        ),
    )
    if outcome == "cancelled":
        mysql.write(
            "INSERT INTO cancelled_order (voucher_id, order_id, buyer_id) VALUES (%s, %s, %s)",
            (voucher_id, order_id, buyer_id),
        )
        mysql.write("UPDATE voucher SET cancelled = cancelled + 1 WHERE id = %s", (voucher_id,))


def test_an_order_is_locked_from_its_comparison_until_it_is_deleted(
    orders: dict[int, int], mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a change of an order after the archive was compared with it."""
    errors = []
    with closing(connect_mysql(mysql_url)) as other, other.cursor() as cursor:

        def change() -> None:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
            try:
                cursor.execute("UPDATE voucher_order SET used_by = 9 ORDER BY order_id LIMIT 1")
            except OperationalError as error:
                errors.append(error.args[0])

        run_after_statement(monkeypatch, change)
        archive_orders.archive_orders(today=TODAY, min_orders=1)
    assert errors == [ER.LOCK_WAIT_TIMEOUT]


@pytest.fixture
def orders(plaza: World) -> dict[int, int]:
    """Order -> buyer of those that can be archived. There are orders that cannot, too."""
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro')")
    add_voucher(OVER, True, "2026-08-01", sold=3)
    add_voucher(UNLIMITED, True, None, sold=2)
    add_voucher(RUNNING, False, "2026-08-01", sold=1)
    final = {}
    for serial, (buyer, outcome) in enumerate(
        zip(BUYERS, ["used", "unused", "cancelled", "sold-out", "used", "withdrawn"], strict=False)
    ):
        final[id_in(7, serial)] = buyer
        add_order(id_in(7, serial), OVER, buyer, outcome)
    final |= {id_in(8, 1): 101}
    add_order(id_in(8, 1), UNLIMITED, 101, "used")
    add_order(id_in(8, 2), UNLIMITED, 102, "unused")
    add_order(id_in(8, 3), RUNNING, 103, "used")
    add_order(id_in(10, 1), OVER, 109, "sold-out")  # of the last month
    return final


def archive(min_orders: int = 1, today: date = TODAY) -> int:
    return archive_orders.archive_orders(min_orders, today)


def read_all(orders: dict[int, int]) -> dict[int, Order]:
    return {order_id: queries.read_order(order_id, buyer) for order_id, buyer in orders.items()}


def ids_in(table: str) -> set[int]:
    return {order_id for (order_id,) in mysql.fetch_all(f"SELECT order_id FROM {table}")}


def read_objects() -> list[ArchivedOrder]:
    """Return the orders of all objects."""
    lines = [gzip.decompress(objects.get(key)).decode().splitlines() for key in keys()]
    return [ArchivedOrder(**json.loads(line)) for of_object in lines for line in of_object]


def keys() -> list[str]:
    return list(objects.list_keys("orders/"))


def test_final_orders_of_closed_months_are_archived_and_read_as_before(
    orders: dict[int, int],
) -> None:
    before = read_all(orders)
    assert archive() == len(orders) == 7
    assert ids_in("archived_order") == set(orders)
    assert ids_in("voucher_order") == {id_in(8, 2), id_in(8, 3), id_in(10, 1)}
    assert [key.rpartition("/")[0] for key in keys()] == [
        "orders/month=2026-07",
        "orders/month=2026-07",
        "orders/month=2026-08",
    ]
    clear_caches()
    assert read_all(orders) == before
    assert {order.status for order in before.values()} >= {"used", "expired", "cancelled", "failed"}
    assert archive() == 0
    assert len(keys()) == 3


def test_an_order_is_read_from_an_object_that_is_newer_than_the_list(
    orders: dict[int, int],
) -> None:
    archive()
    assert queries.read_order(id_in(8, 1), 101).status == "used"  # lists the month
    mysql.write("UPDATE voucher SET finalized_at = '2026-08-02' WHERE id = %s", (RUNNING,))
    assert archive() == 1
    assert queries.read_order(id_in(8, 3), 103).status == "used"


def test_an_archived_order_is_its_buyers_only(orders: dict[int, int]) -> None:
    archive()
    for order_id, buyer in ((id_in(7, 0), 102), (id_in(7, 77), 101), (id_in(10, 1), 101)):
        with pytest.raises(OrderMissing):
            queries.read_order(order_id, buyer)
    assert queries.read_order(id_in(10, 1), 109).reason == "sold-out"


def test_the_archive_has_all_fields(orders: dict[int, int]) -> None:
    archive()
    [result] = [order for order in read_objects() if order.order_id == id_in(7, 0)]
    assert (result.request_id, result.used_by) == ("request-1", 1)
    assert result.decided_us % 1_000_000 == 500_000
    assert result.used_us is not None
    assert result.used_us % 1_000_000 == 123_456


@pytest.mark.parametrize("step", ["insert", "delete", "lock"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_run_that_ends_anywhere_loses_no_order(
    orders: dict[int, int], monkeypatch: pytest.MonkeyPatch, step: str, after: int
) -> None:
    """Given a run whose process ends at the statement ``step`` of the transaction ``after``."""
    before, real, calls = read_all(orders), getattr(mysql_archive, step), 0

    def stop(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > after:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(mysql_archive, step, stop)
        with pytest.raises(KeyboardInterrupt):
            archive()
    assert ids_in("archived_order") | ids_in("voucher_order") >= set(orders)
    assert ids_in("archived_order") & ids_in("voucher_order") == set()
    clear_caches()
    assert read_all(orders) == before
    archive()
    assert ids_in("archived_order") == set(orders)
    clear_caches()
    assert read_all(orders) == before


def test_an_order_that_changed_since_it_was_written_stays(
    orders: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    put = order_objects.put

    def put_and_change(page: Any) -> Any:
        stored = put(page)
        mysql.write(
            "UPDATE voucher_order SET used_at = '2026-09-01', used_by = 1 WHERE order_id = %s",
            (id_in(7, 1),),
        )
        return stored

    monkeypatch.setattr(order_objects, "put", put_and_change)
    assert archive() == len(orders) - 1
    assert queries.read_order(id_in(7, 1), 102).status == "used"
    monkeypatch.undo()
    assert archive() == 1
    clear_caches()
    assert queries.read_order(id_in(7, 1), 102).status == "used", (
        "from the object that was compared"
    )


def test_nothing_is_deleted_unless_s3_has_what_was_written(
    orders: dict[int, int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put = objects.put
    monkeypatch.setattr(objects, "put", lambda key, body, kind: put(key, body[:-1] + b"x", kind))
    assert archive() == 0
    assert ids_in("archived_order") == set()
    [line] = read_log(capsys, "orders_archived")
    assert line["archives_corrupt"] == 3
    monkeypatch.setattr(objects, "put", put)
    assert archive() == len(orders), "the objects are written again"


def test_few_orders_wait_for_the_first_day_of_a_month(orders: dict[int, int]) -> None:
    assert archive(min_orders=4) == 4
    assert archive(min_orders=4, today=date(2026, 11, 1)) == len(orders) - 4


@pytest.mark.parametrize(
    ("today", "before"),
    [
        (date(2026, 11, 21), (2026, 10)),
        (date(2026, 1, 1), (2025, 12)),
        (date(2027, 3, 1), (2027, 2)),
    ],
)
def test_the_last_month_stays_in_mysql(today: date, before: tuple[int, int]) -> None:
    assert archive_orders._find_cutoff(today) == datetime(*before, 1, tzinfo=UTC)


def test_a_late_message_decides_no_archived_order_again(orders: dict[int, int]) -> None:
    archive()
    stock = "SELECT stock FROM voucher WHERE id = %s"
    before = mysql.fetch_all(stock, (OVER,))
    events = [OrderEvent(order_id, OVER, orders[order_id], 1) for order_id in list(orders)[:6]]
    assert persist.decide(events).new == 0
    assert persist.decide([OrderEvent(id_in(8, 1), UNLIMITED, 101, 1)]).new == 0
    assert mysql.fetch_all(stock, (OVER,)) == before
    assert ids_in("voucher_order").isdisjoint(orders)


def test_a_corrupt_or_missing_object_is_reported_and_503(
    orders: dict[int, int], s3: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    archive()
    first = keys()[0]
    body = objects.get(first)
    s3.put_object(Bucket=BUCKET, Key=first, Body=b"x")
    clear_caches()
    capsys.readouterr()
    with pytest.raises(ArchiveUnreadable):
        queries.read_order(id_in(7, 0), 101)
    [line] = read_log(capsys)
    assert (line["event"], line["day"]) == ("archive_corrupt", "2026-07")
    s3.delete_object(Bucket=BUCKET, Key=first)
    clear_caches()
    with pytest.raises(ArchiveUnreadable):
        queries.read_order(id_in(7, 0), 101)
    s3.put_object(Bucket=BUCKET, Key=first, Body=body)
    assert queries.read_order(id_in(7, 0), 101).status == "used"


def test_counts_audit_and_export_know_archived_orders(
    orders: dict[int, int], mysql_url: str
) -> None:
    def read() -> tuple[Any, ...]:
        with connect_mysql(mysql_url) as connection, connection.cursor() as cursor:
            vouchers, record = audited_vouchers.read_vouchers(cursor), read_orders(cursor)
        assert list(audited_vouchers.find_oversold(vouchers)) == []
        assert list(find_reused_ids(record, [])) == []
        return vouchers, record.rows, mysql_orders.count_without_success([OVER, UNLIMITED])

    before = read()
    archive()
    assert read() == before
    rows, _ = export.read_page(101, None, 100)
    assert [
        (row.section, row.fields["id"], row.fields["reason"])
        for row in rows
        if "orders" in row.section
    ] == [("archived_orders", str(order_id), None) for order_id in (id_in(7, 0), id_in(8, 1))]


# ---------------------------------------------------------------- a buyer's list


def test_a_buyers_list_goes_on_in_the_archive(orders: dict[int, int]) -> None:
    before, _ = queries.list_orders(101, None, 10)
    assert [view.order.id for view in before] == [id_in(8, 1), id_in(7, 0)]
    archive()
    assert queries.list_orders(101, None, 10) == (before, None)
    first, last = queries.list_orders(101, None, 1)
    assert (first, last) == (before[:1], id_in(8, 1))
    assert queries.list_orders(101, last, 1) == (before[1:], None)
    both, _ = queries.list_orders(102, None, 10)
    assert [(v.order.id, v.order.status) for v in both] == [
        (id_in(8, 2), "success"),
        (id_in(7, 1), "expired"),
    ]


def test_a_page_reads_three_objects_and_the_next_page_goes_on(
    plaza: World, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_orders, "ORDERS_PER_OBJECT", 1)
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro')")
    add_voucher(OVER, True, "2026-08-01", sold=0)
    for serial in range(7):
        add_order(id_in(7, serial), OVER, 101, "sold-out")
    archive()
    reads: list[str] = []
    get = objects.get
    monkeypatch.setattr(objects, "get", lambda key: record_call(reads, key, get(key)))
    sizes, before = [], None
    while True:
        page, before = queries.list_orders(101, before, 100)
        sizes.append((len(page), len(reads)))
        reads.clear()
        if before is None:
            break
    assert sizes == [(3, 3), (3, 3), (1, 1)]


def test_while_the_archive_is_away_a_list_ends_before_it(
    orders: dict[int, int], s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive()

    monkeypatch.setattr(objects, "get", failing(objects.ObjectsDown("no S3")))
    page, last = queries.list_orders(102, None, 10)
    assert ([view.order.id for view in page], last) == ([id_in(8, 2)], id_in(8, 2))
    with pytest.raises(objects.ObjectsDown):
        queries.list_orders(102, last, 10)


def test_an_archived_order_is_not_cancelled(orders: dict[int, int]) -> None:
    before = read_all(orders)
    archive()
    rows = mysql.fetch_all("SELECT * FROM voucher_order"), mysql.fetch_all("SELECT * FROM voucher")
    for order in before.values():
        if order.status == CANCELLED:
            assert cancel_order.cancel_order(order.id, orders[order.id]) == order
        else:
            with pytest.raises(NotCancellable, match=r"was used|has expired|has failed"):
                cancel_order.cancel_order(order.id, orders[order.id])
    assert rows == (
        mysql.fetch_all("SELECT * FROM voucher_order"),
        mysql.fetch_all("SELECT * FROM voucher"),
    )
