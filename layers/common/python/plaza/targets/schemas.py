"""Schemas of the API: types and ids of targets."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plaza.infra.http.texts import FieldError
from plaza.infra.runtime.errors import NotFound
from plaza.targets.target_ids import TargetId, TypeName, parse_id, parse_reference
from plaza.targets.types import TYPES

REFERENCE = "^[a-z][a-z0-9_]{0,14}:[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
"""The form of a type and an id, ``<type>:<id>``."""

TypeText = Annotated[
    str,
    Field(pattern=TypeName.PATTERN, description=TypeName.DESCRIPTION, examples=[TypeName.EXAMPLE]),
]
TargetIdText = Annotated[
    str, Field(pattern=TargetId.PATTERN, description=TargetId.DESCRIPTION, examples=["9000001"])
]


def check_target(target_type: str, target_id: str) -> None:
    """Raise FieldError unless a type is known, and the id is one of it."""
    if target_type not in TYPES:
        raise FieldError("not-listed", f"has an unknown type: {target_type}")
    try:
        parse_id(target_type, target_id)
    except NotFound as error:
        raise FieldError("wrong-form", f"has an id of the wrong form: {error}") from None


def check_reference(text: str) -> str:
    """Return ``text``, of the form ``REFERENCE``. Raises FieldError unless a target may have it."""
    try:
        parse_reference(text)
    except NotFound as error:
        raise FieldError("wrong-form", f"has a target that cannot be: {error}") from None
    return text
