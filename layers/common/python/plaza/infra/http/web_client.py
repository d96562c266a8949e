"""Requests to servers on the internet, from functions outside of the VPC."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from plaza.infra.aws import tls
from plaza.infra.runtime.clock import Deadline

TIMEOUT_S = 5.0
MAX_BODY_BYTES = 100_000
_PART_BYTES = 16_384


class ServerFailed(Exception):
    """A server did not answer with what it was asked for; the text says how."""


def get_json(url: str, max_s: float = 2 * TIMEOUT_S) -> Any:
    """Return the JSON at an http or https URL, of at most 100 kB. One request, which follows no
    redirect. Raises ServerFailed, also after ``max_s``."""
    parts, deadline = urlsplit(url), Deadline.in_s(max_s)
    host = str(parts.hostname)
    if parts.scheme == "https":
        context = tls.verifying_context(None)
        connection: HTTPConnection = HTTPSConnection(
            host, parts.port, timeout=TIMEOUT_S, context=context
        )
    else:
        connection = HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    try:
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request("GET", target or "/", headers={"Accept": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise ServerFailed(f"HTTP {response.status}")
        body = b""
        while part := response.read1(_PART_BYTES):
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise ServerFailed(f"more than {MAX_BODY_BYTES} bytes")
            if deadline.has_passed:
                raise ServerFailed(f"more than {max_s:g} s")
        return json.loads(body)
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise ServerFailed(type(error).__name__) from error
    finally:
        connection.close()
