"""API functions as Lambda calls them: their handlers, and the events of API Gateway."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from local.paths import ROOT
from local.stack.functions import load_function

Event = dict[str, Any]
Handler = Callable[[Event, object], dict[str, Any]]

APP = ROOT / "functions" / "api" / "reactions" / "app.py"


def load_handler(name: str = "reactions") -> Handler:
    """The handler of an API function, freshly imported."""
    handler: Handler = load_function(f"api/{name}").handler
    return handler


def like_event(post_id: int, user_id: int) -> Event:
    """``PUT /posts/{post_id}/likes/me`` by ``user_id``."""
    event = _event("PUT", f"/posts/{post_id}/likes/me", "PUT /posts/{post_id}/likes/me", user_id)
    event["pathParameters"] = {"post_id": str(post_id)}
    return event


def query_event(post_ids: Sequence[int], user_id: int) -> Event:
    """``POST /reactions/query`` about ``post_ids`` by ``user_id``."""
    event = _event("POST", "/reactions/query", "POST /reactions/query", user_id)
    targets = [{"type": "post", "id": str(post_id)} for post_id in post_ids]
    event["body"] = json.dumps({"targets": targets})
    return event


def user_event(user_id: int, actor_id: int) -> Event:
    """``GET /users/{user_id}`` by ``actor_id``."""
    event = _event("GET", f"/users/{user_id}", "GET /users/{user_id}", actor_id)
    event["pathParameters"] = {"user_id": str(user_id)}
    return event


def feed_event(user_id: int) -> Event:
    """``GET /feed`` by ``user_id``."""
    return _event("GET", "/feed", "GET /feed", user_id)


def shop_event(shop_id: int) -> Event:
    """``GET /shops/{shop_id}``."""
    event = _event("GET", f"/shops/{shop_id}", "GET /shops/{shop_id}", 7)
    event["pathParameters"] = {"shop_id": str(shop_id)}
    return event


def _event(method: str, path: str, route: str, user_id: int) -> Event:
    """An event of payload format 2.0, with all that API Gateway sends along."""
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "*/*",
            "accept-encoding": "gzip, deflate",
            "authorization": "Bearer 3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "content-length": "0",
            "content-type": "application/json",
            "host": "abcdefghij.execute-api.eu-central-1.amazonaws.com",
            "user-agent": "plaza-app/4.2 (iPhone; iOS 18.1)",
            "x-amzn-trace-id": "Root=1-67f0c0de-0123456789abcdef01234567",
            "x-forwarded-for": "203.0.113.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdefghij",
            "authorizer": {"lambda": {"user_id": str(user_id), "role": "user"}},
            "domainName": "abcdefghij.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "abcdefghij",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "plaza-app/4.2 (iPhone; iOS 18.1)",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": route,
            "stage": "$default",
            "time": "04/Apr/2025:10:00:00 +0000",
            "timeEpoch": 1743760800000,
        },
        "isBase64Encoded": False,
    }
