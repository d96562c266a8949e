"""Schemas of the API: sign-in codes and sessions."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any, Self

from aws_lambda_powertools.event_handler.openapi.params import Path
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from plaza.infra.http.schemas import RequestModel, ResponseModel, Time
from plaza.infra.http.texts import LINE_RULE, VISIBLE, check_line, trim
from plaza.people.auth.codes import CHALLENGE_PATTERN, CODE_PATTERN
from plaza.people.auth.new_session import SignedIn
from plaza.people.auth.passkeys import CODE_PATTERN as CODE_OF_PASSKEY
from plaza.people.auth.passkeys import (
    MAX_NAME_CHARS,
    PASSKEY_ID_PATTERN,
    Assertion,
    NewPasskey,
    Passkey,
)
from plaza.people.auth.phones import PHONE_PATTERN
from plaza.people.users import Card
from plaza.people.users.schemas import UserCard

if TYPE_CHECKING:
    from plaza.people.auth.passkey_sign_in import PasskeyChallenge

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

_WAYS_IN = ({"challenge", "code"}, {"id_token"}, {"id_token", "nonce"}, {"passkey"})
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


_BYTES = r"^[A-Za-z0-9_-]+$"
_CLIENT_DATA = "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiQSJ9"
_ASSERTION: dict[str, Any] = {
    "credential_id": "mJH1wOtSl1fFmG0yaMWQ2w",
    "client_data": _CLIENT_DATA,
    "authenticator_data": "SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAQ",
    "signature": "MEUCIQDfLw",
    "user_handle": "Nw",
}
_PASSKEY: dict[str, Any] = {
    "passkey_id": "7f9c2ba4e88f827d616045507605853e",
    "name": "Laptop",
    "created_at": "2026-11-26T09:30:00.518000Z",
    "used_at": None,
}
ClientData = Annotated[
    str,
    Field(max_length=4096, pattern=_BYTES, description="`clientDataJSON` of the browser."),
]
PasskeyCode = Annotated[
    str,
    Field(pattern=CODE_OF_PASSKEY, description="Code that an operator made; it works once."),
]
PasskeyId = Annotated[
    str, Path(pattern=PASSKEY_ID_PATTERN, description="Id of a passkey of the caller.")
]


class PasskeyChallengeRequest(RequestModel):
    """What the challenge is for: with a code, or the session of a role, also for a new passkey."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"code": "c" * 32}]})

    code: PasskeyCode | None = None


class PasskeyChallengeResponse(ResponseModel):
    """A challenge that a passkey signs, once."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "challenge": _CHALLENGE,
                    "rp_id": "console.example.com",
                    "expires_in": 300,
                    "user": {"id": "7", "nickname": "ada", "avatar": None},
                }
            ]
        }
    )

    challenge: Annotated[str, Field(description="Random bytes, base64url.")]
    rp_id: Annotated[str, Field(description="Host that passkeys belong to.")]
    expires_in: Annotated[int, Field(description="Seconds until the challenge expires.")]
    user: Annotated[
        UserCard | None,
        Field(
            description=(
                "To whom a new passkey will belong; `user.id` of the browser is the text of this "
                "id. Null without a code and without a session."
            )
        ),
    ]

    @classmethod
    def of(cls, issued: PasskeyChallenge) -> PasskeyChallengeResponse:
        """Returns ``issued`` as the API sends it."""
        return cls(
            challenge=issued.challenge,
            rp_id=issued.rp_id,
            expires_in=issued.expires_in_s,
            user=None if issued.user is None else UserCard.of(issued.user),
        )


class PasskeyRequest(RequestModel):
    """A new passkey, which a device made for a challenge."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "Laptop",
                    "code": "c" * 32,
                    "client_data": _CLIENT_DATA,
                    "attestation": "o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YVg",
                }
            ]
        }
    )

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_NAME_CHARS,
            description=f"{LINE_RULE} Spaces and invisible characters around it are removed.",
            json_schema_extra={"pattern": VISIBLE},
        ),
        BeforeValidator(trim),
        AfterValidator(check_line),
    ]
    code: PasskeyCode | None = None
    client_data: ClientData
    attestation: Annotated[
        str,
        Field(max_length=16384, pattern=_BYTES, description="`attestationObject` of the browser."),
    ]

    def to_new(self) -> NewPasskey:
        """Returns what the device made."""
        return NewPasskey(self.client_data, self.attestation)


class PasskeyResponse(ResponseModel):
    """A passkey of the caller."""

    model_config = ConfigDict(json_schema_extra={"examples": [_PASSKEY]})

    passkey_id: str
    name: str
    created_at: Time
    used_at: Annotated[Time | None, Field(description="The last sign-in with it.")]

    @classmethod
    def of(cls, passkey: Passkey) -> PasskeyResponse:
        """Returns ``passkey`` as the API sends it."""
        return cls(
            passkey_id=passkey.passkey_id,
            name=passkey.name,
            created_at=passkey.created_at.replace(tzinfo=UTC),
            used_at=passkey.used_at and passkey.used_at.replace(tzinfo=UTC),
        )


class PasskeyAssertion(RequestModel):
    """The signature of a challenge by a passkey. All fields are base64url."""

    credential_id: Annotated[str, Field(max_length=1364, pattern=_BYTES)]
    client_data: ClientData
    authenticator_data: Annotated[str, Field(max_length=4096, pattern=_BYTES)]
    signature: Annotated[str, Field(max_length=2048, pattern=_BYTES)]
    user_handle: Annotated[
        str | None, Field(max_length=128, pattern=_BYTES, description="If the browser has it.")
    ] = None

    def to_assertion(self) -> Assertion:
        """Returns the signature."""
        return Assertion(
            self.credential_id,
            self.client_data,
            self.authenticator_data,
            self.signature,
            self.user_handle,
        )


class SessionRequest(RequestModel):
    """A sign-in code and its challenge, or an ID token and its nonce, if it has one, or the
    signature of a passkey."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"challenge": _CHALLENGE, "code": "123456"},
                {"id_token": _SIGNED, "nonce": "n-0S6_WzA2Mj"},
                {"passkey": _ASSERTION},
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

    passkey: Annotated[
        PasskeyAssertion | None,
        Field(description="In place of challenge and code: an operator signs in to the console."),
    ] = None

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        given = {name for name, value in self if value is not None}
        if given not in _WAYS_IN:
            raise ValueError("has either challenge and code, id_token with its nonce, or passkey")
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
                    "reopened": False,
                }
            ]
        }
    )

    token: Annotated[str, Field(description="Session token, sent as `Authorization: Bearer`.")]
    expires_in: Annotated[int, Field(description="Seconds without use after which it ends.")]
    user: UserCard
    reopened: Annotated[
        bool, Field(description="Whether this sign-in opened a closed account again.")
    ]

    @classmethod
    def of(cls, signed_in: SignedIn) -> SessionResponse:
        """Returns the response to a sign-in."""
        user = signed_in.user
        return cls(
            token=signed_in.token,
            expires_in=signed_in.expires_in_s,
            user=UserCard.of(Card(user.id, user.nickname, user.avatar)),
            reopened=user.is_reopened,
        )
