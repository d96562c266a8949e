"""Sign-in with a phone, an ID token or a passkey, sessions, and ids of anonymous visitors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.reach import visitor_ids
from plaza.core.reach.schemas import VisitorIdResponse
from plaza.infra.http.resolver import (
    PlazaResolver,
    find_caller,
    require_caller,
    require_fresh_sign_in,
)
from plaza.infra.http.routes import (
    ANY_ROLE,
    BEARER,
    OPTIONAL,
    PUBLIC,
    CreatesAt,
    FreshSignIn,
    Responses,
)
from plaza.infra.http.schemas import Page
from plaza.infra.runtime.errors import (
    Forbidden,
    NotFound,
    SignInTooOld,
    SwitchedOff,
    Unauthenticated,
)
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.people import auth
from plaza.people.auth import phone_sign_in, session_end
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.codes import CodeRefused
from plaza.people.auth.issuers import IdTokenRefused
from plaza.people.auth.passkeys import PasskeyRefused, PasskeysAreOff, TooManyPasskeys
from plaza.people.auth.schemas import (
    CodeRequest,
    CodeResponse,
    PasskeyChallengeRequest,
    PasskeyChallengeResponse,
    PasskeyId,
    PasskeyRequest,
    PasskeyResponse,
    PhoneRequest,
    SessionRequest,
    SessionResponse,
)
from plaza.people.users import sign_up
from plaza.people.users.model import PhoneTaken, UserMissing

if TYPE_CHECKING:
    from plaza.people.auth import identity_sign_in, passkey_list, passkey_sign_in
else:  # a sign-in with a phone needs no cryptography
    identity_sign_in = LazyModule("plaza.people.auth.identity_sign_in")
    passkey_list = LazyModule("plaza.people.auth.passkey_list")
    passkey_sign_in = LazyModule("plaza.people.auth.passkey_sign_in")

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
    responses=Responses(
        {201: "The new session."},
        CodeRefused,
        IdTokenRefused,
        PasskeyRefused,
        PasskeysAreOff,
        SwitchedOff,
    ),
)
def create_session(request: SessionRequest) -> tuple[SessionResponse, int]:
    """Sign in with a code, an ID token or a passkey.

    Exchanges a challenge and its code for a session, or an ID token of an OpenID Connect issuer
    that this deployment accepts, or the signature of a passkey. Only the session of a passkey has
    the role of its user, and it ends after 12 hours; the others have the role `user`. The first
    sign-in of a phone, or of a subject of an issuer, creates the user, unless operators stopped new
    accounts. A code, a token and a signature work once: do not repeat a request that succeeded.
    Five wrong codes end the challenge.
    """
    client = app.current_event.headers.get("user-agent")
    if request.passkey is not None:
        signed_in = passkey_sign_in.sign_in(request.passkey.to_assertion(), app.client_ip, client)
    elif request.id_token is not None:
        signed_in = identity_sign_in.sign_in(request.id_token, request.nonce, client)
    else:
        challenge, code = request.challenge or "", request.code or ""
        signed_in = phone_sign_in.sign_in(challenge, code, app.client_ip, client)
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
    phone_sign_in.link(require_caller(app), request.challenge, request.code, app.client_ip)
    return None, 204


@app.delete(
    "/auth/phone",
    security=BEARER,
    middlewares=[FreshSignIn()],
    responses=Responses({204: "The caller has no phone."}),
)
def delete_phone() -> tuple[None, int]:
    """Release the phone.

    The caller signs in with the phone no more, and the next sign-in with it creates another user.
    Sessions stay, so that the caller can link another phone. Idempotent. Needs a sign-in within
    five minutes.
    """
    sign_up.release_phone(require_caller(app))
    return None, 204


@app.post(
    "/passkey-challenges",
    security=OPTIONAL,
    responses=Responses("The challenge.", PasskeyRefused, PasskeysAreOff),
)
def create_passkey_challenge(request: PasskeyChallengeRequest) -> PasskeyChallengeResponse:
    """Get a challenge for a passkey.

    The challenge is signed by a passkey, to sign in or to enroll a new one, once within five
    minutes. A code is not used up by it.
    """
    issued = passkey_sign_in.issue_challenge(request.code, find_caller(app), app.client_ip)
    return PasskeyChallengeResponse.of(issued)


@app.post(
    "/passkeys",
    security=OPTIONAL,
    middlewares=[CreatesAt("/passkeys")],
    responses=Responses(
        {201: "The passkey."},
        PasskeyRefused,
        PasskeysAreOff,
        TooManyPasskeys,
        SignInTooOld,
    ),
)
def create_passkey(request: PasskeyRequest) -> tuple[PasskeyResponse, int]:
    """Enroll a passkey.

    The first one of a user needs the code of an operator, which works once. A further one needs no
    code in a session of a role whose sign-in was within five minutes.
    """
    by: str | passkey_sign_in.EnrollingCaller
    if request.code is not None:
        by = request.code
    else:
        caller_id = require_caller(app)
        if app.caller.role == "user":
            raise Forbidden("A passkey without a code requires a role other than user.")
        require_fresh_sign_in(app.caller)
        by = passkey_sign_in.EnrollingCaller(caller_id, _token())
    enrolled = passkey_sign_in.enroll(request.to_new(), request.name, by, app.client_ip)
    return PasskeyResponse.of(enrolled), 201


@app.get("/passkeys", security=ANY_ROLE, responses=Responses("All passkeys. `next` is null."))
def list_passkeys() -> Page[PasskeyResponse]:
    """List the passkeys of the caller.

    For all roles but `user`.
    """
    listed = passkey_list.list_passkeys(require_caller(app))
    return Page(items=[PasskeyResponse.of(passkey) for passkey in listed], next=None)


@app.delete(
    "/passkeys/<passkey_id>",
    security=ANY_ROLE,
    middlewares=[FreshSignIn()],
    responses=Responses({204: "It opens no session any more."}, NotFound),
)
def delete_passkey(passkey_id: PasskeyId) -> tuple[None, int]:
    """End a passkey of the caller.

    Its sessions stay. Idempotent. Needs a sign-in within five minutes. For all roles but `user`.
    """
    passkey_list.end_passkey(require_caller(app), passkey_id)
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
