"""Handlers of API functions, and the events of API Gateway for them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from cli.paths import ROOT, CommandError
from local.stack.functions import CONTEXT, load_open_function, make_api_event

Event = dict[str, Any]
Handler = Callable[[Event, object], dict[str, Any]]

APP = ROOT / "functions" / "api" / "reactions" / "app.py"


def load_handler(name: str = "reactions") -> Handler:
    """Return the handler of an API function that looks up no session."""
    handler: Handler = load_open_function(f"api/{name}").handler
    return handler


def call(handler: Handler, event: Event) -> None:
    """Call a handler. Raises CommandError unless the status is 200."""
    answer = handler(event, CONTEXT)
    if answer["statusCode"] != 200:
        raise CommandError(f"{event['routeKey']} returned {answer}")


def like_event(post_id: int, user_id: int) -> Event:
    return make_api_event("PUT /posts/{post_id}/likes/me", user_id, post_id=post_id)


def clip_event(clip_id: int, user_id: int) -> Event:
    """Return a like of a target of the app, of the type that ``bench`` declares."""
    route = "PUT /targets/{target_type}/{target_id}/reactions/{kind}/me"
    return make_api_event(route, user_id, target_type="clip", target_id=clip_id, kind="like")


def post_event(post_id: int, user_id: int) -> Event:
    return make_api_event("GET /posts/{post_id}", user_id, post_id=post_id)


def query_event(post_ids: Sequence[int], user_id: int) -> Event:
    targets = [{"type": "post", "id": str(post_id)} for post_id in post_ids]
    event = make_api_event("POST /reactions/query", user_id)
    return event | {"body": json.dumps({"targets": targets})}


def poll_event(post_ids: Sequence[int]) -> Event:
    event = make_api_event("GET /totals", 1)  # whose token it does not read
    of = ",".join(f"post:{post_id}" for post_id in post_ids)
    return event | {"rawQueryString": f"of={of}", "queryStringParameters": {"of": of}}


def user_event(user_id: int, actor_id: int) -> Event:
    return make_api_event("GET /users/{user_id}", actor_id, user_id=user_id)
