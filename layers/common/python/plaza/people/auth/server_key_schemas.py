"""Schemas of the API: keys of servers, for operators."""

from __future__ import annotations

from typing import Annotated

from aws_lambda_powertools.event_handler.openapi.params import Path
from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel, Time
from plaza.people.auth.server_keys import KEY_ID_PATTERN, MAX_REQUESTS_PER_S, NAME_PATTERN, Scope

ServerKeyId = Annotated[
    str,
    Path(
        pattern=f"^{KEY_ID_PATTERN}$",
        description="Id of a key, as `GET /ops/server-keys` lists it.",
    ),
]


class ServerKeyRequest(RequestModel):
    """A new key of a server."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "web", "scopes": ["read", "act"], "requests_per_s": 500}]
        }
    )

    name: Annotated[
        str,
        Field(
            pattern=f"^{NAME_PATTERN}$",
            description="What uses the key. Two keys of a name are valid at a time.",
        ),
    ]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=6)]
    requests_per_s: Annotated[
        int,
        Field(ge=1, le=MAX_REQUESTS_PER_S, description="Limit of the key, for all users together."),
        ACCEPT_INTEGRAL_FLOAT,
    ]


class NewServerKeyResponse(ResponseModel):
    """A new key. It is stored as its SHA-256, so no later response has it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key_id": "F0rDocumentation",
                    "key": "sk_F0rDocumentation_Zm9yLWRvY3VtZW50YXRpb24tb25seS1ub3QtcmVhbC0",
                }
            ]
        }
    )

    key_id: str
    key: Annotated[str, Field(description="Sent as `Authorization: Bearer`.")]


class ServerKeyResponse(ResponseModel):
    """A key of a server, without its secret."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "key_id": "F0rDocumentation",
                    "name": "web",
                    "scopes": ["act", "read"],
                    "requests_per_s": 500,
                    "created_at": "2026-11-02T09:30:00Z",
                    "used_at": "2026-11-24T18:20:00Z",
                    "ended_at": None,
                }
            ]
        }
    )

    key_id: str
    name: str
    scopes: list[Scope]
    requests_per_s: int
    created_at: Time
    used_at: Annotated[Time | None, Field(description="The last use, to ten minutes.")]
    ended_at: Time | None
