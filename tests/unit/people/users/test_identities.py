"""The one rule for issuers and subjects."""

from __future__ import annotations

import pytest

from plaza.people.users.identities import Identity, check_identity, parse_identity


@pytest.mark.parametrize(
    ("issuer", "subject"),
    [
        ("my-app", "ann"),
        ("https://id.example.com/a?b=c", "a b|c"),
        ("i" * 200, "s" * 255),
        ("i", "~"),
    ],
)
def test_an_identity_is_accepted_and_parsed(issuer: str, subject: str) -> None:
    assert check_identity(issuer, subject) == Identity(issuer, subject)
    assert parse_identity(f"{issuer}|{subject}") == Identity(issuer, subject)


@pytest.mark.parametrize(
    ("issuer", "subject"),
    [
        *(("my-app", text) for text in ("", " ", "ann ", " ann", "a\0", "a\t", "a\nb", "\u00e4")),
        *(("my-app", text) for text in ("s" * 256, "\uff41", "\U0001f363", None, 7)),
        *((text, "ann") for text in ("", "my-app ", "my app", "my|app", "i" * 201, "\u00e4", None)),
        (7, "ann"),
    ],
)
def test_what_another_server_may_compare_otherwise_is_no_identity(
    issuer: object, subject: object
) -> None:
    with pytest.raises(ValueError, match="must be 1 to"):
        check_identity(issuer, subject)


@pytest.mark.parametrize("pair", [("a", "A"), ("a", "a."), ("ann", "ann|"), ("a b", "a  b")])
def test_subjects_of_different_bytes_are_different_identities(pair: tuple[str, str]) -> None:
    first, second = (check_identity("my-app", subject) for subject in pair)
    assert first != second
