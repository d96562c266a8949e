"""Signatures of texts that clients send back, before and after the secret is rotated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from plaza.infra.aws import secrets
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.http import signatures
from plaza.infra.http.signatures import is_signed, sign
from plaza.infra.http.signed_cursors import pack_signed_cursor, unpack_signed_cursor
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.process import clear_caches, reset_process
from plaza.infra.runtime.settings import BadSettings
from tests.support.failures import failing
from tests.unit.infra.test_settings import GOOD, set_only


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """``store(text)``: the secret in Secrets Manager. A process reads it again at once."""
    set_only(monkeypatch, GOOD | {"PLAZA_AUTH_SECRET_ID": "plaza/people/auth"})
    monkeypatch.setattr(signatures, "MIN_REFRESH_S", 0)
    reset_process()
    yield lambda text: monkeypatch.setattr(secrets, "_fetch", lambda _: text)
    reset_process()


def test_a_signature_is_valid_for_its_purpose_and_text_only(store: Callable[[str], None]) -> None:
    store("one")
    signature = sign("cursor", "a")
    assert len(signature) == 22
    assert is_signed("cursor", "a", signature)
    assert not is_signed("cursor", "b", signature)
    assert not is_signed("other", "a", signature)


def test_a_random_key_may_begin_like_json(store: Callable[[str], None]) -> None:
    """One in ninety of the emulator's keys does, and has no closing brace."""
    store("{one")
    assert is_signed("cursor", "a", sign("cursor", "a"))


def test_a_signature_stays_valid_for_one_rotation(store: Callable[[str], None]) -> None:
    """A new secret is one text, and becomes two keys when it is first rotated."""
    store("one")
    signature = sign("cursor", "a")
    store('{"current": "two", "previous": "one"}')
    clear_caches()
    assert is_signed("cursor", "a", signature)
    assert sign("cursor", "a") != signature
    store('{"current": "three", "previous": "two"}')
    clear_caches()
    assert not is_signed("cursor", "a", signature)


def test_an_old_process_accepts_the_signatures_of_new_ones(store: Callable[[str], None]) -> None:
    store('{"current": "two", "previous": "one"}')
    signature = sign("cursor", "a")
    clear_caches()
    store("one")
    sign("cursor", "a")
    store('{"current": "two", "previous": "one"}')
    assert is_signed("cursor", "a", signature)


def test_forged_signatures_fetch_the_secret_once_a_minute(
    store: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = []

    def fetch(secret_id: str) -> str:
        fetched.append(secret_id)
        return "one"

    monkeypatch.setattr(signatures, "MIN_REFRESH_S", 60)
    monkeypatch.setattr(secrets, "_fetch", fetch)
    now_s = clock.monotonic_s()
    for passed_s in (0, 1, 59, 61, 62):
        monkeypatch.setattr(clock, "monotonic_s", lambda passed_s=passed_s: now_s + passed_s)
        assert not is_signed("cursor", "a", "forged")
    assert len(fetched) == 2


def test_a_forged_signature_loses_no_key_while_secrets_manager_is_unavailable(
    store: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store("one")
    signature = sign("cursor", "a")
    monkeypatch.setattr(secrets, "_fetch", failing(SecretsDown("Secrets Manager is unavailable")))
    with pytest.raises(SecretsDown):
        is_signed("cursor", "a", "forged")
    assert is_signed("cursor", "a", signature)


def test_a_changed_cursor_is_refused(store: Callable[[str], None]) -> None:
    store("one")
    cursor = pack_signed_cursor("near", 1, 2)
    assert unpack_signed_cursor(cursor, "near", (int, int)) == [1, 2]
    with pytest.raises(BadInput):
        unpack_signed_cursor(cursor, "far", (int, int))


def test_a_function_without_the_secret_signs_nothing(
    store: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAZA_AUTH_SECRET_ID")
    reset_process()
    with pytest.raises(BadSettings, match="PLAZA_AUTH_SECRET_ID"):
        sign("cursor", "a")
