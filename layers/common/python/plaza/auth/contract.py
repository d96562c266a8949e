"""What clients send and get to sign in."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plaza.auth.codes import CHALLENGE_FORM, FORM
from plaza.auth.phones import WRITTEN
from plaza.auth.signing_in import SignedIn
from plaza.infra.http import Answer, Question
from plaza.users import Card
from plaza.users.contract import UserCard

Phone = Annotated[str, Field(pattern=WRITTEN, description="a phone number: + and its country")]
Code = Annotated[str, Field(pattern=FORM, description="six digits, as the text says")]

Challenge = Annotated[
    str, Field(pattern=CHALLENGE_FORM, description="opaque; a secret of the client that asked")
]


class CodeQuestion(Question):
    """Where to send a code."""

    phone: Phone


class CodeSent(Answer):
    """A code is on its way; it works for ``expires_in`` seconds, and only with ``challenge``."""

    challenge: Challenge
    expires_in: int


class SessionQuestion(Question):
    """The code that came to a phone, with the challenge that was given for it."""

    challenge: Challenge
    code: Code


class SessionOpened(Answer):
    """A session: it ends when it wasn't used for ``expires_in`` seconds."""

    token: str
    expires_in: int
    user: UserCard

    @classmethod
    def of(cls, done: SignedIn) -> SessionOpened:
        """What to answer to somebody who signed in."""
        user = UserCard.of(Card(done.user.id, done.user.nickname, done.user.avatar))
        return cls(token=done.token, expires_in=done.expires_in_s, user=user)
