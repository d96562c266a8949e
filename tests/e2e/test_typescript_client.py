"""The TypeScript client on the deployed stack: sign-in, posts, likes, a sale, sign-out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from local.load.town import make_voucher
from local.stack.stack import Stack
from tests.e2e.client import Client, read_like_totals, wait_until
from tests.support.node import CLIENT, run_node


def test_two_users_meet_and_everything_is_counted_once(
    stack: Stack, base_url: str, sign_in: Callable[..., str], rows: Callable[..., Any]
) -> None:
    admin = Client(base_url, sign_in(6_900_001, role="admin"))
    shop = admin("POST", "/shops", {"name": "Corner Books"}).json["id"]
    voucher = admin("POST", "/vouchers", make_voucher(shop, time.time(), stock=1)).json["id"]
    printed = run_node("test/journey.ts", base_url, stack.web_url, voucher, cwd=CLIENT)
    made = json.loads(printed)
    wait_until(
        "the like is stored once", lambda: read_like_totals(rows, int(made["post"])) == (1, 1)
    )
    orders = rows("SELECT COUNT(*) FROM voucher_order WHERE voucher_id = %s", int(voucher))
    assert orders == ((1,),)
