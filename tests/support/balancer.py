"""Requests as an Application Load Balancer sends them to a function, multi-value headers on."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlsplit

from local.stack.gateway import Request, read_text

TARGET_GROUP = (
    "arn:aws:elasticloadbalancing:eu-central-1:123456789012:"
    "targetgroup/plaza-staging-react/49e9d65c45c6791a"
)
TRACE_ID = "1-67891233-abcdef012345678912345678"


def make_balancer_event(request: Request) -> dict[str, Any]:
    """Return the event for a request: the query as it is in the URL, all headers as lists."""
    url = urlsplit(request.target)
    forwarded = [request.headers.get("x-forwarded-for"), request.source_ip]
    headers = {
        **request.headers,
        "x-amzn-trace-id": f"Root={TRACE_ID}",
        "x-forwarded-for": ", ".join(filter(None, forwarded)),
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    }
    query: dict[str, list[str]] = {}
    for pair in filter(None, url.query.split("&")):
        name, _, value = pair.partition("=")
        query.setdefault(name, []).append(value)
    body = read_text(request.headers.get("content-type", ""), request.body)
    return {
        "requestContext": {"elb": {"targetGroupArn": TARGET_GROUP}},
        "httpMethod": request.method,
        "path": url.path,
        "multiValueQueryStringParameters": query,
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "body": base64.b64encode(request.body).decode() if body is None else body,
        "isBase64Encoded": body is None and request.body != b"",
    }
