"""Schemas of the API: blocks."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import ResponseModel, Time
from plaza.infra.mysql.sql import from_us
from plaza.people.blocks.model import BlockedUser
from plaza.people.users.schemas import UserCard


class BlockResponse(ResponseModel):
    """The caller's block of a user after the request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"blocked": True, "changed": True}, {"blocked": False, "changed": True}]
        }
    )

    blocked: Annotated[bool, Field(description="Whether the caller blocks the user.")]
    changed: Annotated[bool, Field(description="Whether this request changed `blocked`.")]


class BlockListItem(ResponseModel):
    """A user whom the caller blocks."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user": {"id": "31", "nickname": "grace", "avatar": None},
                    "at": "2026-11-22T12:00:02.518304Z",
                }
            ]
        }
    )

    user: UserCard
    at: Annotated[Time, Field(description="When the block was made.")]

    @classmethod
    def of(cls, blocked: BlockedUser) -> BlockListItem:
        """Returns ``blocked`` as the API sends it."""
        return cls(user=UserCard.of(blocked.card), at=from_us(blocked.created_us))
