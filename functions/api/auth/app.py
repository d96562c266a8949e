"""Sign-in with a phone or an ID token, the end of sessions, and ids of anonymous visitors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza import auth
from plaza.auth import phone_sign_in, session_end
from plaza.auth.caller_identity import identify
from plaza.auth.codes import CodeRefused
from plaza.auth.issuers import IdTokenRefused
from plaza.auth.schemas import (
    CodeRequest,
    CodeResponse,
    PhoneRequest,
    SessionRequest,
    SessionResponse,
)
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.routes import BEARER, PUBLIC, CreatesAt, Responses
from plaza.infra.runtime.errors import SwitchedOff, Unauthenticated
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.reach import visitor_ids
from plaza.reach.schemas import VisitorIdResponse
from plaza.users.model import PhoneTaken, UserMissing

if TYPE_CHECKING:
    from plaza.auth import identity_sign_in
else:  # a sign-in with a phone needs no cryptography
    identity_sign_in = LazyModule("plaza.auth.identity_sign_in")

# A session that has ended may be ended again: this repeats what failed half way.
app = PlazaResolver(
    identify,
    tag="auth",
    admits_unknown_tokens=("DELETE /auth/sessions", "DELETE /auth/sessions/current"),
)


@app.post("/auth/codes", security=PUBLIC, responses=Responses({202: "The code is being sent."}))
def send_code(request: CodeRequest) -> tuple[CodeResponse, int]:
    """Send a sign-in code.

    Sends a six-digit code by text message. The code works once, for five minutes, and only with
    the challenge of this response. Each request sends another code. Codes are limited by phone, by
    network and by deployment.
    """
    sent = phone_sign_in.send_code(request.phone, app.client_ip)
    return CodeResponse(challenge=sent.challenge, expires_in=sent.expires_in_s), 202


@app.post(
    "/auth/sessions",
    security=PUBLIC,
    middlewares=[CreatesAt("/auth/sessions/current")],
    responses=Responses({201: "The new session."}, CodeRefused, IdTokenRefused, SwitchedOff),
)
def create_session(request: SessionRequest) -> tuple[SessionResponse, int]:
    """Sign in with a code or an ID token.

    Exchanges a challenge and its code for a session, or an ID token of an OpenID Connect issuer
    that this deployment accepts. The first sign-in of a phone, or of a subject of an issuer,
    creates the user, unless operators stopped new accounts. A code and a token work once: do not
    repeat a request that succeeded. Five wrong codes end the challenge.
    """
    if request.id_token is not None:
        signed_in = identity_sign_in.sign_in(request.id_token, request.nonce)
    else:
        challenge, code = request.challenge or "", request.code or ""
        signed_in = phone_sign_in.sign_in(challenge, code, app.client_ip)
    return SessionResponse.of(signed_in), 201


@app.put(
    "/auth/phone",
    security=BEARER,
    responses=Responses({204: "Linked."}, CodeRefused, PhoneTaken, UserMissing),
)
def link_phone(request: PhoneRequest) -> tuple[None, int]:
    """Link a phone.

    Gives the caller, who signed in with an ID token, the phone of a challenge, with which the
    caller can sign in, too. The code works once.
    """
    phone_sign_in.link(require_caller(app), request.challenge, request.code)
    return None, 204


@app.post("/visitors", security=PUBLIC, tags=["content"], responses=Responses("The id."))
def create_visitor_id() -> VisitorIdResponse:
    """Create an anonymous id.

    A client without a session sends it with views of posts, so that it counts as one visitor. The
    id is signed, is stored nowhere, and ends with the week.
    """
    return VisitorIdResponse.of(visitor_ids.issue(app.client_ip))


@app.delete("/auth/sessions/current", security=BEARER, responses=Responses({204: "Signed out."}))
def delete_current_session() -> tuple[None, int]:
    """Sign out.

    Ends the session of the token. The next request with the token, this one included, is a 401.
    """
    session_end.end_session(_token())
    require_caller(app)  # an unknown token is a 401, after it was ended in every store
    return None, 204


@app.delete("/auth/sessions", security=BEARER, responses=Responses({204: "Signed out."}))
def delete_sessions() -> tuple[None, int]:
    """Sign out on all devices.

    Ends all sessions of the caller, including the one of this request.
    """
    session_end.end_all_sessions(_token())
    return None, 204


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about sessions."""
    return app.resolve(event, context)


def _token() -> str:
    token = auth.parse_bearer(app.current_event.headers.get("authorization", ""))
    if token is None:
        raise Unauthenticated("Send `Authorization: Bearer <token>`")
    return token
