"""Resources for the fuzz, so that some requests name what exists."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from local.load.town import make_voucher
from local.stack.stack import Stack
from local.stack.tokens import create_users, open_sessions
from tests.e2e.client import Client

if TYPE_CHECKING:
    from plaza_client.models import VoucherRequest

ADMIN = 71
BYSTANDERS = range(69_900_001, 69_900_007)
"""Users who may be followed, blocked and erased."""
OWN = "own"
"""Name of the ids of texts whose author is the user of the run."""


def create(
    stack: Stack, user_id: int, role: str, *, owns_shops: bool
) -> Mapping[str, Sequence[str]]:
    """Create resources of a user with ``role``, who may own the shops, and some of an admin. Return
    their ids, by the names that parameters of paths have, and the user's own texts by ``OWN``."""
    create_users(stack.mysql_url, BYSTANDERS)
    [own], [other] = open_sessions(stack, [user_id], role), open_sessions(stack, [ADMIN], "admin")
    user, admin = (Client(stack.base_url, token).plaza for token in (own, other))
    ids: defaultdict[str, list[str]] = defaultdict(list)
    for number, bystander in enumerate(BYSTANDERS):
        author, reader = ((user, admin), (admin, user))[number % 2]
        post = author.posts.create({"kind": "note", "title": "Harbour", "body": "At dawn."})
        comment = author.posts.create_comment(post["id"], {"body": "So it is."})
        shop_type = admin.shop_types.create({"name": f"Type {number}"})
        shop = admin.shops.create({"name": "Linden", "type_id": shop_type["id"]})
        if owns_shops:
            admin.shops.appoint_member(shop["id"], str(user_id), {"role": "owner"})
        review = author.shops.create_review(shop["id"], {"body": "A find!", "score": 5})
        sale = cast("VoucherRequest", make_voucher(shop["id"], time.time()))
        voucher = admin.vouchers.create(sale)
        order = user.vouchers.place_order(voucher["id"])
        report = reader.reports.create(
            {"target": {"type": "post", "id": post["id"]}, "reason": "spam"}
        )
        created = {
            "post_id": post, "comment_id": comment, "type_id": shop_type, "shop_id": shop,
            "review_id": review, "voucher_id": voucher, "report_id": report,
        }  # fmt: skip
        for name, resource in created.items():
            ids[name].append(resource["id"])
        if author is user:
            ids[OWN] += [post["id"], comment["id"], review["id"]]
        ids["order_id"].append(order["order_id"])
        ids["user_id"].append(str(bystander))
    return ids
