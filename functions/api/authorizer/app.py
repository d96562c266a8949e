"""Who calls, and may they now? All are let through, with their name or why they are refused.

The API functions refuse: API Gateway's own refusals are no problem+json.
"""

from typing import Any

from plaza.auth.caller_identity import Caller, identify
from plaza.infra.observability import begin_request, end_request, record


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """The caller's session as the context of the request, or why or how long they are refused."""
    begin_request(event)
    header = event.get("headers", {}).get("authorization")
    address = event["requestContext"]["http"]["sourceIp"]
    caller = identify(header, address, event["routeKey"])
    request_context = _build_context(caller)
    record(
        "caller_identified",
        {"requests_limited": 1} if caller.wait_ms else None,
        refusal=caller.refusal,
        user_id=request_context.get("user_id"),
    )
    end_request()
    return {"isAuthorized": True, "context": request_context}


def _build_context(caller: Caller) -> dict[str, str]:
    """The context of the request. It is never empty: a request without one was not limited here."""
    if caller.wait_ms:
        return {"retry_after_s": str(-(-caller.wait_ms // 1000))}
    if caller.session:
        return {"user_id": str(caller.session.user_id), "role": caller.session.role}
    return {"refusal": caller.refusal} if caller.refusal else {"anonymous": "true"}
