"""The Bloom filter of all vouchers: ids that were made up cost MySQL nothing (``infra.id_filter``)."""

from __future__ import annotations

from plaza.infra.id_filter import IdFilter

VOUCHER_IDS = IdFilter("vouchers")
