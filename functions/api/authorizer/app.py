"""Who calls? Everybody is let through, with their name or with the reason why they have none.

The API functions refuse: API Gateway's own refusals are no problem+json.
"""

from typing import Any

from plaza.auth import find_session, read_bearer
from plaza.infra.errors import Unavailable
from plaza.infra.observability import cause, record


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """The caller's session, as the context of the request."""
    said = _identify(event.get("headers", {}).get("authorization"))
    record("caller_identified", refusal=said.get("refusal"), user_id=said.get("user_id"))
    return {"isAuthorized": True, "context": said}


def _identify(header: str | None) -> dict[str, str]:
    if header is None:
        return {}
    token = read_bearer(header)
    if token is None:
        return {"refusal": "malformed"}
    try:
        session = find_session(token)
    except Unavailable as error:
        record("session_unchecked", {"sessions_unchecked": 1}, **cause(error))
        return {"refusal": "unavailable"}
    if session is None:
        return {"refusal": "unknown"}
    return {"user_id": str(session.user_id), "role": session.role}
