"""Codes, challenges, and keyed hashes of phones and networks."""

from __future__ import annotations

import contextlib
import hmac
import re

import pytest

from plaza.infra.http.networks import network_of, site_of
from plaza.people.auth.codes import (
    CHALLENGE_PATTERN,
    KeyedHasher,
    hash_challenge,
    make_code,
)
from tests.support.call_log import record_call

PHONE, OTHER = "+8613800138000", "+8613800138001"


def test_codes_are_six_uniform_random_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = {make_code() for _ in range(2_000)}
    assert all(re.fullmatch("[0-9]{6}", code) for code in codes)
    assert len(codes) > 1_980
    assert {code[0] for code in codes} == set("0123456789"), "leading zeros, too"
    drawn: list[int] = []
    monkeypatch.setattr("secrets.randbelow", lambda limit: record_call(drawn, limit, 7))
    assert (make_code(), drawn) == ("000007", [1_000_000])


def test_a_keyed_hash_is_deterministic() -> None:
    hasher = KeyedHasher("secret")
    assert hasher.hash_phone(PHONE) == KeyedHasher("secret").hash_phone(PHONE)
    mac = hmac.new(b"secret", f"phone {PHONE}".encode(), "sha256")
    assert hasher.hash_phone(PHONE) == mac.hexdigest()


def test_keyed_hashes_differ_by_secret_value_and_purpose() -> None:
    hasher = KeyedHasher("secret")
    hashes = {
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
    assert len(hashes) == 9


def test_challenges_are_long_and_unique() -> None:
    hasher = KeyedHasher("secret")
    challenges = {hasher.make_challenge() for _ in range(100)}
    assert len(challenges) == 100
    assert all(re.fullmatch(CHALLENGE_PATTERN, challenge) for challenge in challenges)
    assert len({hash_challenge(challenge) for challenge in challenges}) == 100


def test_a_challenge_is_recognized_by_the_secret_that_made_it() -> None:
    challenge = KeyedHasher("secret").make_challenge()
    assert KeyedHasher("secret").made(challenge)
    assert not KeyedHasher("another").made(challenge)


def test_a_phone_is_decrypted_only_with_its_challenge_and_the_secret() -> None:
    hasher = KeyedHasher("secret")
    challenge = hasher.make_challenge()
    for phone in (PHONE, "+1234567", "+123456789012345"):
        encrypted = hasher.encrypt_phone(challenge, phone)
        assert re.fullmatch("[0-9a-f]{64}", encrypted), "one length for every phone"
        assert hasher.decrypt_phone(challenge, encrypted) == phone
        for other, key in ((KeyedHasher("another"), challenge), (hasher, hasher.make_challenge())):
            with contextlib.suppress(UnicodeDecodeError):
                assert other.decrypt_phone(key, encrypted) != phone
    assert hasher.encrypt_phone(challenge, PHONE) != hasher.encrypt_phone(
        hasher.make_challenge(), PHONE
    )


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
        ("no address", "no address"),
    ],
)
def test_a_network_is_an_ipv4_address_or_an_ipv6_64_prefix(address: str, network: str) -> None:
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
def test_a_site_is_an_ipv4_address_or_an_ipv6_48_prefix(address: str, site: str) -> None:
    assert site_of(address) == site
