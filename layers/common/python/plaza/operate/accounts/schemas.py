"""Schemas of the API: exports of accounts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import ResponseModel
from plaza.infra.mysql.export_sections import ExportedRow


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
