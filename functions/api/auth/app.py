"""Signing in with a phone, and signing out."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response

from plaza import auth
from plaza.auth import ending, signing_in
from plaza.auth.contract import CodeQuestion, CodeSent, SessionOpened, SessionQuestion
from plaza.infra import limits
from plaza.infra.errors import Unauthenticated
from plaza.infra.http import BEARER, answers, api, caller, problems, serve, source_address

# Signing out again repeats what failed half way.
app = api(admits_unknown_tokens=True, limiter=limits.take_of_address)

_OPEN: dict[str, Any] = {"tags": ["auth"]}
_OWN: dict[str, Any] = {
    "tags": ["auth"],
    "security": [BEARER],
    "responses": {204: {"description": "signed out"}} | problems(401),
}


@app.post("/auth/codes", **_OPEN, responses=answers(202, CodeSent, "on its way") | problems(400))
def send_code(question: CodeQuestion) -> tuple[CodeSent, int]:
    """Send a code to a phone. The code works only with the challenge of the answer."""
    sent = signing_in.send_code(question.phone, source_address(app))
    return CodeSent(challenge=sent.challenge, expires_in=sent.expires_in_s), 202


@app.post(
    "/auth/sessions",
    **_OPEN,
    responses=answers(201, SessionOpened, "signed in") | problems(400, 401),
)
def sign_in(question: SessionQuestion) -> tuple[SessionOpened, int]:
    """Sign in with the code, which works once, for 5 minutes. The first time makes the user.

    Five wrong codes end the challenge.
    """
    done = signing_in.sign_in(question.challenge, question.code, source_address(app))
    return SessionOpened.of(done), 201


@app.delete("/auth/sessions/current", **_OWN)
def sign_out() -> Response[None]:
    """Sign out."""
    ending.end_session(_token())
    caller(app)  # whose token is unknown is told so, once it is so everywhere
    return Response(204)


@app.delete("/auth/sessions", **_OWN)
def sign_out_everywhere() -> Response[None]:
    """Sign out everywhere."""
    ending.end_all_sessions(_token())
    return Response(204)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about signing in."""
    return serve(app, event, context)


def _token() -> str:
    token = auth.read_bearer(app.current_event.headers.get("authorization", ""))
    if token is None:
        raise Unauthenticated("Send `Authorization: Bearer <token>`")
    return token
