"""Requests and responses of the API of sign-in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plaza.auth.codes import CHALLENGE_PATTERN, CODE_PATTERN
from plaza.auth.phone_sign_in import SignedIn
from plaza.auth.phones import PHONE_PATTERN
from plaza.infra.http import RequestModel, ResponseModel
from plaza.users import Card
from plaza.users.schemas import UserCard

Phone = Annotated[
    str, Field(pattern=PHONE_PATTERN, description="A phone number with + and its country code.")
]
Code = Annotated[
    str, Field(pattern=CODE_PATTERN, description="The six digits of the text message.")
]

Challenge = Annotated[
    str,
    Field(
        pattern=CHALLENGE_PATTERN,
        description="An opaque secret of the client that requested the code.",
    ),
]


class CodeRequest(RequestModel):
    """The phone to send a code to."""

    phone: Phone


class CodeResponse(ResponseModel):
    """A code was sent. It is valid for ``expires_in`` seconds, and only with ``challenge``."""

    challenge: Challenge
    expires_in: int


class SessionRequest(RequestModel):
    """The code that was sent to the phone, and the challenge of its request."""

    challenge: Challenge
    code: Code


class SessionResponse(ResponseModel):
    """A session, which expires ``expires_in`` seconds after its last use."""

    token: str
    expires_in: int
    user: UserCard

    @classmethod
    def of(cls, signed_in: SignedIn) -> SessionResponse:
        user = signed_in.user
        card = UserCard.of(Card(user.id, user.nickname, user.avatar))
        return cls(token=signed_in.token, expires_in=signed_in.expires_in_s, user=card)
