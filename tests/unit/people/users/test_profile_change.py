"""The validation of profile changes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from plaza.people.users import Card
from plaza.people.users.schemas import ProfileUpdateRequest, UserCard

PICTURE = "https://pics.example/ada.png"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ({"nickname": "Ada"}, {"nickname": "Ada"}),
        ({"nickname": "  Ada L. "}, {"nickname": "Ada L."}),
        ({"nickname": " " * 10 + "x" * 30}, {"nickname": "x" * 30}),
        ({"nickname": FAMILY}, {"nickname": FAMILY}),
        ({"avatar": PICTURE}, {"avatar": PICTURE}),
        ({"avatar": None}, {"avatar": None}),
        ({"avatar": PICTURE + "?" + "a" * (511 - len(PICTURE))}, None),
        ({"nickname": "Ada", "avatar": None}, {"nickname": "Ada", "avatar": None}),
    ],
)
def test_only_the_fields_that_are_sent_are_changes(
    body: dict[str, Any], changes: dict[str, Any] | None
) -> None:
    assert ProfileUpdateRequest.model_validate(body).changes == (
        body if changes is None else changes
    )


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ()),
        ({"role": "admin"}, ("role",)),
        ({"nickname": "Ada", "role": "admin"}, ("role",)),
        ({"nickname": "Ada", "id": "9"}, ("id",)),
        ({"nickname": "Ada", "followers": 9}, ("followers",)),
        ({"nickname": "Ada", "version": 9}, ("version",)),
        ({"changes": {"role": "admin"}}, ("changes",)),
        ({"nickname": None}, ("nickname",)),
        ({"nickname": 7}, ("nickname",)),
        ({"nickname": ["Ada"]}, ("nickname",)),
        ({"nickname": ""}, ("nickname",)),
        ({"nickname": "   "}, ("nickname",)),
        ({"nickname": "\u200b\u2060"}, ("nickname",)),
        ({"nickname": "a\x00b"}, ("nickname",)),
        ({"nickname": "a\nb"}, ("nickname",)),
        ({"nickname": "a\u202eb"}, ("nickname",)),
        ({"nickname": "\ud800"}, ()),
        ({"nickname": "x" * 41}, ("nickname",)),
        ({"avatar": ""}, ("avatar",)),
        ({"avatar": "http://pics.example/a.png"}, ("avatar",)),
        ({"avatar": "javascript:alert(1)"}, ("avatar",)),
        ({"avatar": PICTURE + "?" + "a" * (512 - len(PICTURE))}, ("avatar",)),
        ({"avatar": "https://pics.example/é"}, ("avatar",)),
        ({"avatar": f"{PICTURE}\n"}, ("avatar",)),
        ({"avatar": {"url": PICTURE}}, ("avatar",)),
        ([], ()),
    ],
    ids=ascii,
)
def test_an_invalid_change_is_rejected_and_names_the_field(
    body: Any, field: tuple[str, ...]
) -> None:
    with pytest.raises(ValidationError) as refusal:
        ProfileUpdateRequest.model_validate(body)
    assert [error["loc"] for error in refusal.value.errors()] == [field]


def test_an_unknown_user_has_a_placeholder_card() -> None:
    card = UserCard.unknown(2**62).model_dump()
    assert card == {"id": str(2**62), "nickname": "unknown user", "avatar": None}
    assert UserCard.of(Card(7, "Ada", PICTURE)).avatar == PICTURE
