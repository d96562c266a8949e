"""Mutants of the consumer of orders and of their recovery."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

FLASH_SALES = "tests/integration/flash_sales"
SALES = f"{FLASH_SALES}/test_flash_sales.py"
LIFECYCLE = f"{FLASH_SALES}/test_order_lifecycle.py"
RECOVERY_LIST = f"{FLASH_SALES}/test_recovery_list.py"
WAITLIST = f"{FLASH_SALES}/test_waitlist.py"
ARCHIVE = f"{FLASH_SALES}/test_order_archive.py"
RACES = f"{FLASH_SALES}/test_order_races.py"
ORDERS = "tests/unit/flash_sales/test_voucher_orders.py"

MUTANTS = [
    *mutants_of(
        "flash_sales/persist.py",
        [SALES, RACES, LIFECYCLE],
        (
            "not-locked",
            "stocks = mysql_vouchers.lock(cursor, {event.voucher_id for event in events})\n"
            "    existing, holders = mysql_orders.read_existing(cursor, events)",
            "existing, holders = mysql_orders.read_existing(cursor, events)\n"
            "    stocks = mysql_vouchers.lock(cursor, {event.voucher_id for event in events})",
            "The rows of orders are read after their voucher is locked.",
        ),
        (
            "stock-not-taken",
            "    if taken := model.count_units(new):\n        mysql_vouchers.take_stock(cursor, taken)\n",
            "",
            "Each success takes a unit from the stock.",
        ),
        (
            "existing-not-acknowledged",
            "[*existing.values(), *new], len(new)",
            "[*new], len(new)",
            "An order that was decided before is acknowledged again.",
        ),
        (
            "mismatched-decided",
            "new = model.decide(matching, existing, holders, stocks)",
            "new = model.decide(events, existing, holders, stocks)",
            "An event with the id of another order is not decided.",
        ),
        (
            "mismatched-kept",
            "    returned = redis_orders.acknowledge(\n"
            '        [OrderRow(*event.identity, "timed-out", event.request_id)'
            " for event in mismatched]\n    ).returned",
            "    returned = 0",
            "What Redis reserved for the id of another order is released.",
        ),
        (
            "mismatched-ignored",
            "    raise OrderMismatch(f\"ids of other orders: {', '.join(shown)}\")",
            "    return",
            "An event with the id of another order is dead-lettered.",
        ),
        (
            "outbox-kept",
            "        mysql_orders.delete_spilled("
            "[event for event in events if event not in mismatched])\n",
            "",
            "Decided reservations leave the outbox.",
        ),
        (
            "mismatched-lost",
            "        send_mismatched(mismatched)\n        mysql_orders",
            "        mysql_orders",
            "A reservation with the id of another order is sent to the consumer.",
        ),
        (
            "not-acknowledged",
            "    result = redis_orders.acknowledge(rows)\n",
            "    result = redis_orders.acknowledge([])\n",
            "Redis gets each decision.",
        ),
        (
            "dead-not-counted",
            '{"dead_orders_decided": decided.new}',
            '{"dead_orders_decided": len(decided.rows)}',
            "Dead letters that were decided before are not counted.",
        ),
    ),
    *mutants_of(
        "flash_sales/mysql_orders.py",
        [SALES, LIFECYCLE, ARCHIVE],
        (
            "archived-forgotten",
            "        FROM archived_order FORCE INDEX (PRIMARY)\n"
            "        WHERE buyer_id IN ({sql.render_ids({event.buyer_id for event in events})})\n"
            "          AND order_id IN",
            "        FROM archived_order FORCE INDEX (PRIMARY)\n"
            "        WHERE buyer_id IN ({sql.render_ids({event.buyer_id for event in events})})\n"
            "          AND order_id NOT IN",
            "An archived order is not decided again.",
        ),
        (
            "failure-holds",
            'int(row.buyer_id) if row.is_success else "NULL",',
            "int(row.buyer_id),",
            "A failed order does not keep its buyer from ordering.",
        ),
        (
            "cancelled-holds",
            "SET holder_id = NULL, reason = 'cancelled'",
            "SET reason = 'cancelled'",
            "The buyer of a cancelled order may order again.",
        ),
        (
            "code-of-cancelled",
            "reason = 'cancelled', code_sha256 = NULL",
            "reason = 'cancelled'",
            "The code of a cancelled order is forgotten.",
        ),
        (
            "used-twice",
            '          AND holder_id IS NOT NULL\n          AND used_at IS NULL\n        """,\n'
            "        (redeemer_id",
            '          AND holder_id IS NOT NULL\n        """,\n        (redeemer_id',
            "An order is used once.",
        ),
        (
            "cancelled-used",
            "          AND code_sha256 = %s\n          AND holder_id IS NOT NULL\n",
            "          AND code_sha256 = %s\n",
            "A cancelled order is not used.",
            "Cancelling an order deletes its code, which the statement requires.",
        ),
        (
            "other-code",
            "        WHERE order_id = %s\n          AND code_sha256 = %s\n",
            "        WHERE order_id = %s\n          AND (code_sha256 = %s OR TRUE)\n",
            "An order is used with its newest code.",
        ),
        (
            "code-of-used",
            '          AND holder_id IS NOT NULL\n          AND used_at IS NULL\n        """,\n'
            "        (code_sha256, order_id)",
            '          AND holder_id IS NOT NULL\n        """,\n        (code_sha256, order_id)',
            "A used order gets no other code.",
        ),
        (
            "holders-twice",
            "              AND holder_id > %s\n",
            "              AND holder_id >= %s\n",
            "A page of successes begins after the last one of the page before it.",
        ),
        (
            "outbox-of-other-order",
            "              AND (order_id, voucher_id, buyer_id) IN ({identities})\n",
            "",
            "Only the decided reservation of an id leaves the outbox.",
        ),
    ),
    *mutants_of(
        "flash_sales/recover_orders.py",
        [RECOVERY_LIST, SALES, LIFECYCLE, WAITLIST],
        (
            "backlog",
            "                if not is_backlogged:\n",
            "                if True:\n",
            "Nothing is sent again while the queue has a long backlog.",
        ),
        (
            "too-old-sent",
            "tally.resent += ORDERS.send_all(recent)",
            "tally.resent += ORDERS.send_all(found)",
            "Orders that are too old are decided instead of sent.",
        ),
        (
            "too-old-not-decided",
            "mismatched += persist.decide(too_old[start : start + _BATCH]).mismatched",
            "mismatched += persist.decide([]).mismatched",
            "Orders that are too old are decided.",
        ),
        (
            "mismatched-lost",
            "                persist.send_mismatched(mismatched)\n",
            "",
            "An event with the id of another order is sent to the consumer.",
        ),
        (
            "sqs-stops-decisions",
            "    except QueueDown as error:\n        failure = error\n    for vouchers",
            "    except QueueDown as error:\n        raise error\n    for vouchers",
            "Orders that are too old are decided without SQS.",
        ),
        (
            "failure-lost",
            "    if failure is not None:\n        raise failure\n",
            "",
            "A run that SQS refused fails.",
        ),
        (
            "outbox",
            "        tally.decided += persist.decide_spilled(deadline)\n",
            "        tally.decided += 0\n",
            "Orders that SQS refused are decided.",
        ),
        (
            "withdrawn",
            "                _withdraw_missed,\n",
            "",
            "A withdrawal that Redis missed is repeated.",
        ),
        (
            "not-prepared",
            "                _prepare_sales,\n",
            "",
            "A sale that opens soon is loaded.",
        ),
        (
            "not-continued",
            "                _continue_loading,\n",
            "",
            "A load that no order continues is continued.",
        ),
        (
            "cancelled-not-reconfirmed",
            "        if counts.cancelled < voucher.cancelled:\n",
            "        if False:\n",
            "Cancelled orders that Redis lost are acknowledged again.",
        ),
        (
            "waitlists",
            "                waitlist.recover_waitlists,\n",
            "",
            "The waitlists of unfinalized sales are recovered.",
        ),
        (
            "withdrawn-prepared",
            "if voucher.terms.opens_us > now_us and not voucher.withdrawn",
            "if voucher.terms.opens_us > now_us",
            "A withdrawn voucher is not loaded before it opens.",
            "The load of a withdrawn voucher raises VoucherWithdrawn, and nothing is stored.",
        ),
        (
            "first-page-only",
            "        after_id = vouchers[-1].id\n        yield vouchers",
            "        after_id = 2**62\n        yield vouchers",
            "All pages of vouchers are recovered.",
        ),
    ),
    *mutants_of(
        "flash_sales/recover_orders.py",
        ["tests/integration/api/test_unknown_ids.py"],
        (
            "filter",
            "                _add_to_filter,\n",
            "",
            "Vouchers that the filter missed are added.",
        ),
    ),
    *mutants_of(
        "flash_sales/model.py",
        [ORDERS, SALES],
        (
            "decided-again",
            "        if event.order_id in existing:\n            continue\n",
            "",
            "An order is decided once.",
        ),
        (
            "second-success",
            "        if (voucher_id, buyer_id) in successes:\n",
            "        if False:\n",
            "A buyer has one success of a voucher.",
        ),
        (
            "second-success-of-batch",
            "            successes.add((voucher_id, buyer_id))\n",
            "",
            "A buyer has one success of a voucher, also within a batch.",
        ),
        (
            "oversold",
            "        elif units <= 0:\n",
            "        elif units < 0:\n",
            "No more units are sold than there are.",
        ),
        (
            "stock-of-batch",
            "            left[voucher_id] = units - 1\n",
            "",
            "Each success of a batch takes a unit.",
        ),
        (
            "withdrawn",
            "        elif (units := left.get(voucher_id, 0)) is None:\n",
            "        elif (units := left.get(voucher_id, 0) or 0) is None:\n",
            "An order of a withdrawn voucher fails by its reason.",
        ),
        (
            "order-of-arrival",
            "for _, event in sorted(by_id.items()):",
            "for _, event in by_id.items():",
            "The lowest order id is decided first.",
        ),
        (
            "units-of-failures",
            "        if row.is_success:\n            taken",
            "        if True:\n            taken",
            "A failed order takes no unit.",
        ),
        (
            "mismatched-matches",
            "same = identities.setdefault(event.order_id, event.identity) == event.identity",
            "same = bool(identities.setdefault(event.order_id, event.identity))",
            "An event with the id of another order is not decided.",
        ),
    ),
]
