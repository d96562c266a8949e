"""Schemas of the API: a user's own sessions."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, get_args

from aws_lambda_powertools.event_handler.openapi.params import Path
from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import ResponseModel, Time
from plaza.infra.runtime.observability import record_unknown
from plaza.people.auth.sessions import SESSION_ID_PATTERN, Method, OwnSession

SessionId = Annotated[
    str, Path(pattern=SESSION_ID_PATTERN, description="Id of a session of the caller.")
]


class OwnSessionResponse(ResponseModel):
    """An open session of the caller."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "3b1f6a0c9d2e4f58a7b6c5d4e3f20112",
                    "current": True,
                    "role": "user",
                    "method": "code",
                    "client": "Mozilla/5.0 (X11; Linux x86_64)",
                    "signed_in_at": "2026-11-26T09:30:00.518000Z",
                    "expires_at": "2026-12-26T09:30:00Z",
                }
            ]
        }
    )

    id: Annotated[str, Field(description="Names the session; it is no token.")]
    current: Annotated[bool, Field(description="Whether it is the session of this request.")]
    role: Annotated[
        str,
        Field(description="`user`, `moderator`, `sales`, `operator` or `admin`: what it admits."),
    ]
    method: Annotated[
        Method | None,
        Field(description="How it was opened; null for a way that this version does not know."),
    ]
    client: Annotated[str | None, Field(description="`User-Agent` of the sign-in.")]
    signed_in_at: Time
    expires_at: Annotated[Time, Field(description="When it ends unless it is used.")]

    @classmethod
    def of(cls, session: OwnSession, current: bytes) -> OwnSessionResponse:
        """Returns ``session`` as the API sends it in the session of the token hash ``current``. A
        method of another version is null."""
        method: Method | None = session.method
        if method not in get_args(Method):
            record_unknown("session.method", session.method)
            method = None
        return cls(
            id=session.name,
            current=session.token_sha256 == current,
            role=session.role,
            method=method,
            client=session.client,
            signed_in_at=session.signed_in_at.replace(tzinfo=UTC),
            expires_at=session.expires_at.replace(tzinfo=UTC),
        )
