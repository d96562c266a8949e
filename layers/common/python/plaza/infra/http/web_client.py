"""Requests to servers on the internet, from functions outside of the VPC."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from plaza.infra.aws import tls
from plaza.infra.runtime.clock import Deadline

TIMEOUT_S = 5.0
MAX_POST_S = 10.0
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


def post_json(
    url: str, body: str, headers: Mapping[str, str], *, allows_loopback: bool = False
) -> None:
    """Send JSON to a URL that a user of Plaza chose. One request. Raises ServerFailed unless the
    answer is a 2xx, within ``MAX_POST_S``.

    The host is resolved once, and the connection goes to the address that was checked: it must be a
    public one of IPv4, or a loopback one of http if ``allows_loopback``. Redirects are failures.
    """
    parts = urlsplit(url)
    host, is_https = str(parts.hostname), parts.scheme == "https"
    address = resolve_public(host, allows_loopback=allows_loopback and not is_https)
    if not is_https and not ipaddress.ip_address(address).is_loopback:
        raise ServerFailed("its URL is not https")
    port = parts.port or (443 if is_https else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    own = {"Content-Type": "application/json", "User-Agent": "Plaza-Webhooks", **headers}
    connection = HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        with _connected(address, port) as plain:
            connection.sock = (
                tls.verifying_context(None).wrap_socket(plain, server_hostname=host)
                if is_https
                else plain
            )
            connection.request("POST", target, body.encode(), own)
            status = connection.getresponse().status
    except (OSError, HTTPException, ValueError) as error:
        raise ServerFailed(type(error).__name__) from error
    finally:
        connection.close()
    if not 200 <= status < 300:
        raise ServerFailed(f"HTTP {status}")


def resolve_public(host: str, *, allows_loopback: bool = False) -> str:
    """Return the first address of IPv4 of a host. Raises ServerFailed if it has none, or one that
    is not public: private, shared, link-local, loopback, multicast or reserved."""
    try:
        entries = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ServerFailed("its host has no address") from error
    addresses = [str(entry[4][0]) for entry in entries]
    for text in addresses:
        address = ipaddress.IPv4Address(text)
        is_public = address.is_global and not (address.is_multicast or address.is_reserved)
        if not is_public and not (allows_loopback and address.is_loopback):
            raise ServerFailed("its address is not public")
    return addresses[0]


@contextmanager
def _connected(address: str, port: int) -> Iterator[socket.socket]:
    """Yield a connection that is shut down after ``MAX_POST_S``, however slowly bytes arrive."""
    plain = socket.create_connection((address, port), TIMEOUT_S)
    # TLS takes over the descriptor of the socket; a copy of it can still end the connection.
    copy = socket.socket(fileno=os.dup(plain.fileno()))

    def end() -> None:
        with suppress(OSError):
            copy.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(MAX_POST_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield plain
    finally:
        timer.cancel()
        plain.close()
        copy.close()
