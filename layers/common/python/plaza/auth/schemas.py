"""What clients send and get to sign in."""

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
    str, Field(pattern=PHONE_PATTERN, description="a phone number: + and its country")
]
Code = Annotated[str, Field(pattern=CODE_PATTERN, description="six digits, as the text says")]

Challenge = Annotated[
    str, Field(pattern=CHALLENGE_PATTERN, description="opaque; a secret of the client that asked")
]


class CodeRequest(RequestModel):
    """Where to send a code."""

    phone: Phone


class CodeResponse(ResponseModel):
    """A code is on its way; it works for ``expires_in`` seconds, and only with ``challenge``."""

    challenge: Challenge
    expires_in: int


class SessionRequest(RequestModel):
    """The code that came to a phone, with the challenge that was given for it."""

    challenge: Challenge
    code: Code


class SessionResponse(ResponseModel):
    """A session: it ends when it wasn't used for ``expires_in`` seconds."""

    token: str
    expires_in: int
    user: UserCard

    @classmethod
    def of(cls, done: SignedIn) -> SessionResponse:
        """What to answer to somebody who signed in."""
        user = UserCard.of(Card(done.user.id, done.user.nickname, done.user.avatar))
        return cls(token=done.token, expires_in=done.expires_in_s, user=user)
