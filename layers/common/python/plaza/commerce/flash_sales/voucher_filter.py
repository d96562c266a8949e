"""The bloom filter of all vouchers, which keeps lookups of invented ids from MySQL."""

from __future__ import annotations

from plaza.infra.derived.id_filter import IdFilter

VOUCHER_IDS = IdFilter("vouchers")
