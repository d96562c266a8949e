"""End the waiting of an erased user. Orders stay: they are the shop's record."""

from __future__ import annotations

from plaza.commerce.flash_sales import mysql_waitlist
from plaza.commerce.flash_sales.waitlist import leave_waitlist
from plaza.infra.runtime.clock import Deadline

_PAGE = 100


def erase(user_id: int, deadline: Deadline) -> int:
    """Give up the positions and offers of a user; return how many. Ends at the deadline. Safe to
    repeat. Raises MysqlDown, RedisDown."""
    left = 0
    while voucher_ids := mysql_waitlist.find_of_buyer(user_id, _PAGE):
        for voucher_id in voucher_ids:
            if deadline.has_passed:
                return left
            leave_waitlist(voucher_id, user_id)
            left += 1
    return left
