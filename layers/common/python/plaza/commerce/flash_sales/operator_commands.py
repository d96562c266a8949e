"""What operators do with orders and sales."""

from __future__ import annotations

from plaza.commerce.flash_sales import inspection
from plaza.commerce.flash_sales import recover_orders as orders
from plaza.infra.jobs.operator_commands import Id, Result, command


@command
def recover_orders(*, everything: bool = False) -> Result:
    """Send or decide overdue orders. Everything: decide all that are pending."""
    after_s = 0 if everything else None
    return {"recovered": orders.recover_orders(after_s, after_s)}


@command
def show_sale(*, voucher_id: Id) -> Result:
    """Show the state of a sale in Redis, and the sizes of its other keys."""
    return inspection.show_sale(voucher_id)


@command
def close_sale(*, voucher_id: Id) -> Result:
    """Drop the state of a sale that has ended; it is closed with the numbers of MySQL."""
    return {"voucher_id": voucher_id, "existed": inspection.close_sale(voucher_id)}
