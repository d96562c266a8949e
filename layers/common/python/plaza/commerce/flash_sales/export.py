"""What an export has of a user's orders, and of the waitlists that the user is on."""

from __future__ import annotations

from plaza.infra.mysql.export_sections import Section

SECTIONS = (
    Section(
        name="orders",
        table="voucher_order",
        user="buyer_id",
        index="by_buyer",
        order={"order_id": int},
        columns=("order_id AS id", "voucher_id", "reason", "request_id", "decided_at", "used_at"),
    ),
    Section(
        name="archived_orders",
        table="archived_order",
        user="buyer_id",
        order={"order_id": int},
        columns=("order_id AS id", "voucher_id", "reason"),
    ),
    Section(
        name="waitlists",
        table="waitlist_entry",
        user="buyer_id",
        index="by_buyer",
        order={"voucher_id": int},
        columns=("voucher_id", "joined_at"),
    ),
)
