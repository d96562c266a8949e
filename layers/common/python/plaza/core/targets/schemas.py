"""Schemas of the API: types and ids of targets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from plaza.core.targets.target_ids import TargetId, TypeName, parse_id, parse_reference
from plaza.core.targets.types import TYPES as ALL_TYPES
from plaza.core.targets.types import TypedId
from plaza.infra.http.schemas import RequestPart
from plaza.infra.http.texts import FieldError
from plaza.infra.runtime.errors import NotFound

REFERENCE = f"{TypeName.PATTERN.removesuffix('$')}:{TargetId.PATTERN.removeprefix('^')}"
"""The form of a type and an id, ``<type>:<id>``."""

TypeText = Annotated[
    str,
    Field(pattern=TypeName.PATTERN, description=TypeName.DESCRIPTION, examples=[TypeName.EXAMPLE]),
]
TargetIdText = Annotated[
    str, Field(pattern=TargetId.PATTERN, description=TargetId.DESCRIPTION, examples=["9000001"])
]


class NamedTarget(RequestPart):
    """The type and the id of a target; ``TYPES``: the types that it may have."""

    TYPES: ClassVar[Collection[str]] = ALL_TYPES

    type: TypeText
    id: TargetIdText

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.type not in self.TYPES:
            raise FieldError("not-listed", f"has another type: {self.type}")
        try:
            self.to_target()
        except NotFound as error:
            raise FieldError("wrong-form", f"has an id of the wrong form: {error}") from None
        return self

    def to_target(self) -> TypedId:
        """Returns the type and the number of the target."""
        return self.type, parse_id(self.type, self.id)


def check_reference(text: str) -> str:
    """Return ``text``, of the form ``REFERENCE``. Raises FieldError unless a target may have it."""
    try:
        parse_reference(text)
    except NotFound as error:
        raise FieldError("wrong-form", f"has a target that cannot be: {error}") from None
    return text
