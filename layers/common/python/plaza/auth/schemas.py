"""Schemas of the API: sign-in codes and sessions."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from plaza.auth.codes import CHALLENGE_PATTERN, CODE_PATTERN
from plaza.auth.new_session import SignedIn
from plaza.auth.phones import PHONE_PATTERN
from plaza.infra.http.schemas import RequestModel, ResponseModel
from plaza.users import Card
from plaza.users.schemas import UserCard

Phone = Annotated[
    str,
    Field(
        pattern=PHONE_PATTERN,
        description=(
            "Phone number in international format, starting with `+` and the country code. It must "
            "be valid in the numbering plan of its country, and of a country and type that codes "
            "are sent to."
        ),
        json_schema_extra={"format": "phone"},
    ),
]
Code = Annotated[
    str, Field(pattern=CODE_PATTERN, description="The six digits of the text message.")
]
Challenge = Annotated[
    str,
    Field(
        pattern=CHALLENGE_PATTERN,
        description="Secret that the code works with. Opaque; only this client has it.",
    ),
]

_CHALLENGE = "qkB2n0yD8c6qC0mJm3rj1xN6yVb8oQ0o4p3Xw5kZt9E"
_SIGNED = "eyJhbGciOiJFUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"


class CodeRequest(RequestModel):
    """The phone that a sign-in code is sent to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"phone": "+14155550123"}]})

    phone: Phone


class CodeResponse(ResponseModel):
    """A sign-in code that is being sent."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"challenge": _CHALLENGE, "expires_in": 300}]}
    )

    challenge: Challenge
    expires_in: Annotated[int, Field(description="Seconds until the code expires.")]


class PhoneRequest(RequestModel):
    """A sign-in code and its challenge, for the phone of the caller."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"challenge": _CHALLENGE, "code": "123456"}]}
    )

    challenge: Challenge
    code: Code


class SessionRequest(RequestModel):
    """A sign-in code and its challenge, or an ID token and its nonce, if it has one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"challenge": _CHALLENGE, "code": "123456"},
                {"id_token": _SIGNED, "nonce": "n-0S6_WzA2Mj"},
            ],
        }
    )

    challenge: Challenge | None = None
    code: Code | None = None
    id_token: Annotated[
        str | None,
        Field(
            max_length=8192,
            pattern=r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$",
            description=(
                "ID token of an OpenID Connect issuer that the deployment accepts, in place of "
                "challenge and code. It works once."
            ),
        ),
    ] = None
    nonce: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description=(
                "The `nonce` of the ID token, or the text whose SHA-256, in hex, that is. Required "
                "if the token has one."
            ),
        ),
    ] = None

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        phone = (self.challenge, self.code)
        is_phone = None not in phone and (self.id_token, self.nonce) == (None, None)
        is_token = self.id_token is not None and phone == (None, None)
        if not is_phone and not is_token:
            raise ValueError("has either challenge and code, or id_token with its nonce")
        return self


class SessionResponse(ResponseModel):
    """A new session."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "token": "Zm9yLWRvY3VtZW50YXRpb24tb25seS1ub3QtcmVhbC0",
                    "expires_in": 2_592_000,
                    "user": {"id": "7", "nickname": "ada", "avatar": None},
                }
            ]
        }
    )

    token: Annotated[str, Field(description="Session token, sent as `Authorization: Bearer`.")]
    expires_in: Annotated[int, Field(description="Seconds without use after which it ends.")]
    user: UserCard

    @classmethod
    def of(cls, signed_in: SignedIn) -> SessionResponse:
        """Returns the response to a sign-in."""
        user = UserCard.of(Card(signed_in.user.id, signed_in.user.nickname, signed_in.user.avatar))
        return cls(token=signed_in.token, expires_in=signed_in.expires_in_s, user=user)
