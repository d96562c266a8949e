"""Times in requests have a year from 2000 to 2999 as responses show it, in UTC."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from plaza.commerce.flash_sales.schemas import VoucherRequest

VOUCHER = {"shop_id": "5", "kind": "ordinary", "title": "Cake", "price_cents": 1, "stock": 1}


@pytest.mark.parametrize(
    ("time", "accepted"),
    [
        ("2000-01-01T00:00:00Z", True),
        ("2000-01-01T14:00:00+14:00", True),
        ("2000-01-01T13:59:59+14:00", False),
        ("2000-01-01T00:00:00+14:00", False),
        ("2999-12-31T23:59:59Z", True),
        ("2999-12-31T11:59:59-12:00", True),
        ("2999-12-31T12:00:00-12:00", False),
    ],
)
def test_a_time_keeps_its_year_in_utc(time: str, accepted: bool) -> None:
    if accepted:
        assert VoucherRequest.model_validate(VOUCHER | {"expires_at": time}).expires_at
        return
    with pytest.raises(ValidationError) as refusal:
        VoucherRequest.model_validate(VOUCHER | {"expires_at": time})
    assert [error["loc"] for error in refusal.value.errors()] == [("expires_at",)]
