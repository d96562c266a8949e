"""Signing in with a phone, and signing out."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.event_handler import Response

from plaza import auth
from plaza.auth import phone_sign_in, session_end
from plaza.auth.schemas import CodeRequest, CodeResponse, SessionRequest, SessionResponse
from plaza.infra import limits
from plaza.infra.errors import Unauthenticated
from plaza.infra.http import (
    BEARER,
    create_api,
    describe_problems,
    describe_response,
    read_source_ip,
    require_caller,
    serve,
)

# Signing out again repeats what failed half way.
app = create_api(admits_unknown_tokens=True, limiter=limits.acquire_for_address)

_OPEN: dict[str, Any] = {"tags": ["auth"]}
_OWN: dict[str, Any] = {
    "tags": ["auth"],
    "security": [BEARER],
    "responses": {204: {"description": "signed out"}} | describe_problems(401),
}


@app.post(
    "/auth/codes",
    **_OPEN,
    responses=describe_response(202, CodeResponse, "on its way") | describe_problems(400),
)
def send_code(request: CodeRequest) -> tuple[CodeResponse, int]:
    """Send a code to a phone. The code works only with the challenge of the answer."""
    sent = phone_sign_in.send_code(request.phone, read_source_ip(app))
    return CodeResponse(challenge=sent.challenge, expires_in=sent.expires_in_s), 202


@app.post(
    "/auth/sessions",
    **_OPEN,
    responses=describe_response(201, SessionResponse, "signed in") | describe_problems(400, 401),
)
def sign_in(request: SessionRequest) -> tuple[SessionResponse, int]:
    """Sign in with the code, which works once, for 5 minutes. The first time makes the user.

    Five wrong codes end the challenge.
    """
    done = phone_sign_in.sign_in(request.challenge, request.code, read_source_ip(app))
    return SessionResponse.of(done), 201


@app.delete("/auth/sessions/current", **_OWN)
def sign_out() -> Response[None]:
    """Sign out."""
    session_end.end_session(_token())
    require_caller(app)  # whose token is unknown is told so, once it is so everywhere
    return Response(204)


@app.delete("/auth/sessions", **_OWN)
def sign_out_everywhere() -> Response[None]:
    """Sign out everywhere."""
    session_end.end_all_sessions(_token())
    return Response(204)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about signing in."""
    return serve(app, event, context)


def _token() -> str:
    token = auth.parse_bearer(app.current_event.headers.get("authorization", ""))
    if token is None:
        raise Unauthenticated("Send `Authorization: Bearer <token>`")
    return token
