"""Codes, and what stands for phones and networks."""

from __future__ import annotations

import contextlib
import re

import pytest

from plaza.auth.codes import (
    CHALLENGE_PATTERN,
    KeyedHasher,
    hash_challenge,
    make_challenge,
    make_code,
)
from plaza.infra.networks import network_of, site_of
from tests.support.call_log import record_call

PHONE, OTHER = "+8613800138000", "+8613800138001"


def test_codes_are_six_digits_from_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {make_code() for _ in range(2_000)}
    assert all(re.fullmatch("[0-9]{6}", code) for code in codes)
    assert len(codes) > 1_980
    assert {code[0] for code in codes} == set("0123456789"), "zeros in front, too"
    drawn: list[int] = []
    monkeypatch.setattr("secrets.randbelow", lambda most: record_call(drawn, most, 7))
    assert (make_code(), drawn) == ("000007", [1_000_000])


def test_a_seal_is_the_same_each_time_and_tells_nothing() -> None:
    hasher = KeyedHasher("secret")
    assert hasher.hash_phone(PHONE) == KeyedHasher("secret").hash_phone(PHONE)
    assert re.fullmatch("[0-9a-f]{64}", hasher.hash_phone(PHONE))


def test_a_seal_differs_by_secret_by_phone_by_code_and_by_what_it_seals() -> None:
    hasher = KeyedHasher("secret")
    seals = {
        hasher.hash_phone(PHONE),
        hasher.hash_phone(OTHER),
        KeyedHasher("another").hash_phone(PHONE),
        hasher.hash_network(PHONE),
        hasher.hash_phone_and_network(PHONE, "203.0.113.7"),
        hasher.hash_phone_and_network(PHONE, "203.0.113.8"),
        hasher.hash_code(PHONE, "123456"),
        hasher.hash_code(OTHER, "123456"),
        hasher.hash_code(PHONE, "123457"),
    }
    assert len(seals) == 9


def test_challenges_are_long_and_never_the_same() -> None:
    challenges = {make_challenge() for _ in range(100)}
    assert len(challenges) == 100
    assert all(re.fullmatch(CHALLENGE_PATTERN, challenge) for challenge in challenges)
    assert len({hash_challenge(challenge) for challenge in challenges}) == 100


def test_a_hidden_phone_is_revealed_by_its_challenge_and_the_secret_alone() -> None:
    hasher, challenge = KeyedHasher("secret"), make_challenge()
    for phone in (PHONE, "+1234567", "+123456789012345"):
        encrypted = hasher.encrypt_phone(challenge, phone)
        assert re.fullmatch("[0-9a-f]{64}", encrypted), "as long for every phone"
        assert hasher.decrypt_phone(challenge, encrypted) == phone
        for other, key in ((KeyedHasher("another"), challenge), (hasher, make_challenge())):
            with contextlib.suppress(UnicodeDecodeError):
                assert other.decrypt_phone(key, encrypted) != phone
    assert hasher.encrypt_phone(challenge, PHONE) != hasher.encrypt_phone(make_challenge(), PHONE)


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


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"),
        ("2001:db8:1:ffff::1", "2001:db8:1::/48"),
        ("2001:db8:2::1", "2001:db8:2::/48"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("no address", "no address"),
    ],
)
def test_a_site_is_an_address_or_what_a_provider_gives_to_many_customers(
    address: str, site: str
) -> None:
    assert site_of(address) == site
