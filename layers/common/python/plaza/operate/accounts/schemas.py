"""Schemas of the API: erasures and exports of accounts."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import ResponseModel, Time
from plaza.infra.mysql.export_sections import ExportedRow
from plaza.people.users.erasures import Erasure


class ErasureResponse(ResponseModel):
    """The erasure of an account."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "user_id": "7",
                    "state": "account-closed",
                    "requested_at": "2026-11-22T12:00:00.518000Z",
                    "erases_at": "2026-11-29T12:00:00.518000Z",
                    "erased_at": None,
                    "closed_at": None,
                },
                {
                    "user_id": "7",
                    "state": "erased",
                    "requested_at": "2026-11-22T12:00:00.518000Z",
                    "erases_at": "2026-11-29T12:00:00.518000Z",
                    "erased_at": "2026-11-29T12:06:11.020000Z",
                    "closed_at": None,
                },
            ]
        }
    )

    user_id: str
    state: Annotated[
        Literal["account-closed", "erasing", "erased", "closed"],
        Field(
            description=(
                "`account-closed`: the next sign-in opens it again, until `erases_at`. "
                "`erased`: nothing was found any more. `closed`: 15 days later; until then what "
                "late messages bring back is erased again."
            )
        ),
    ]
    requested_at: Time
    erases_at: Annotated[
        Time | None,
        Field(description="When its data begins to be erased. Null if that was at once."),
    ]
    erased_at: Time | None
    closed_at: Time | None

    @classmethod
    def of(cls, erasure: Erasure) -> ErasureResponse:
        """Returns ``erasure`` as the API sends it."""
        return cls(
            user_id=str(erasure.user_id),
            state=erasure.state,
            requested_at=erasure.requested_at.replace(tzinfo=UTC),
            erases_at=erasure.erases_at and erasure.erases_at.replace(tzinfo=UTC),
            erased_at=erasure.erased_at and erasure.erased_at.replace(tzinfo=UTC),
            closed_at=erasure.closed_at and erasure.closed_at.replace(tzinfo=UTC),
        )


class ExportedRowResponse(ResponseModel):
    """A row about the caller."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "section": "likes",
                    "row": {
                        "target_type": "post",
                        "target_id": "9000001",
                        "version": 1795169730000000,
                        "created_at": "2026-11-22T12:00:00.518000Z",
                        "updated_at": "2026-11-22T12:00:00.518000Z",
                    },
                }
            ]
        }
    )

    section: Annotated[str, Field(description="What the row is: `profile`, `posts`, `likes`, ...")]
    row: Annotated[dict[str, Any], Field(description="Its columns. Ids are strings.")]

    @classmethod
    def of(cls, exported: ExportedRow) -> ExportedRowResponse:
        """Returns ``exported`` as the API sends it."""
        return cls(section=exported.section, row=exported.fields)
