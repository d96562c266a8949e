"""The Bloom filter of all vouchers: ids that were made up cost MySQL nothing."""

from __future__ import annotations

from plaza.infra.id_filter import IdFilter

VOUCHER_IDS = IdFilter("vouchers")
