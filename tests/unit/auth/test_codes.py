"""Codes, and what stands for phones and networks."""

from __future__ import annotations

import re

import pytest

from plaza.auth.codes import Seal, make_code
from plaza.infra.networks import network_of

PHONE, OTHER = "+8613800138000", "+8613800138001"


def test_codes_are_six_digits_from_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {make_code() for _ in range(2_000)}
    assert all(re.fullmatch("[0-9]{6}", code) for code in codes)
    assert len(codes) > 1_980
    assert {code[0] for code in codes} == set("0123456789"), "zeros in front, too"
    drawn: list[int] = []
    monkeypatch.setattr("secrets.randbelow", lambda most: drawn.append(most) or 7)
    assert (make_code(), drawn) == ("000007", [1_000_000])


def test_a_seal_is_the_same_each_time_and_tells_nothing() -> None:
    seal = Seal("secret")
    assert seal.of_phone(PHONE) == Seal("secret").of_phone(PHONE)
    assert re.fullmatch("[0-9a-f]{64}", seal.of_phone(PHONE))


def test_a_seal_differs_by_secret_by_phone_by_code_and_by_what_it_seals() -> None:
    seal = Seal("secret")
    seals = {
        seal.of_phone(PHONE),
        seal.of_phone(OTHER),
        Seal("another").of_phone(PHONE),
        seal.of_network(PHONE),
        seal.of_code(PHONE, "123456"),
        seal.of_code(OTHER, "123456"),
        seal.of_code(PHONE, "123457"),
    }
    assert len(seals) == 7


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("nobody knows", "nobody knows"),
    ],
)
def test_a_network_is_an_address_or_all_that_a_customer_has_of_ipv6(
    address: str, network: str
) -> None:
    assert network_of(address) == network
