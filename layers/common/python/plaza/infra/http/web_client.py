"""Requests to servers on the internet: webhooks, push services and issuers, from functions outside
of the VPC. No other module sends one.

The host is resolved once, and the connection goes to the address that was checked: a public one of
IPv4. No redirect is followed. A request ends in time, however slowly bytes arrive, and reads a
bounded number of them.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, NamedTuple

from plaza.infra.aws import tls
from plaza.infra.http.urls import Url
from plaza.infra.runtime.clock import Deadline

TIMEOUT_S = 5.0
MAX_REQUEST_S = 10.0
MAX_BODY_BYTES = 100_000
_PART_BYTES = 16_384


class ServerFailed(Exception):
    """A server did not answer with what it was asked for; the text says how."""


class Answer(NamedTuple):
    """The status of a server's answer, and its header Retry-After."""

    status: int
    retry_after: str | None


def get_json(url: Url, *, allows_loopback: bool = False) -> Any:
    """Return the JSON at a URL, of at most ``MAX_BODY_BYTES``. One request. Raises ServerFailed."""
    headers = {"Accept": "application/json"}
    with _exchange("GET", url, None, headers, allows_loopback=allows_loopback) as response:
        if response.status != 200:
            raise ServerFailed(f"HTTP {response.status}")
        body = b""
        while part := response.read1(_PART_BYTES):
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise ServerFailed(f"more than {MAX_BODY_BYTES} bytes")
        return json.loads(body)


def post(
    url: Url, body: bytes, headers: Mapping[str, str], *, allows_loopback: bool = False
) -> Answer:
    """Send bytes to a URL; return the answer, whose body is not read. One request. Raises
    ServerFailed."""
    with _exchange("POST", url, body, headers, allows_loopback=allows_loopback) as response:
        return Answer(response.status, response.headers.get("Retry-After"))


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
def _exchange(
    method: str,
    url: Url,
    body: bytes | None,
    headers: Mapping[str, str],
    *,
    allows_loopback: bool,
) -> Iterator[HTTPResponse]:
    """Send a request and yield the response. Raises ServerFailed, for https also if the certificate
    is not the host's, and after ``MAX_REQUEST_S``, for what reads the response, too."""
    deadline = Deadline.in_s(MAX_REQUEST_S)
    is_https = url.scheme == "https"
    address = _resolve_in_time(url.host, deadline, allows_loopback and not is_https)
    if not is_https and not ipaddress.ip_address(address).is_loopback:
        raise ServerFailed("its URL is not https")
    connection = HTTPConnection(url.host, url.port, timeout=TIMEOUT_S)
    try:
        with _connected(address, url.port, deadline) as plain:
            connection.sock = (
                tls.verifying_context(None).wrap_socket(plain, server_hostname=url.host)
                if is_https
                else plain
            )
            connection.request(method, url.target, body, dict(headers))
            with connection.getresponse() as response:
                yield response
                if deadline.has_passed:  # the end of the connection may read as the end of a body
                    raise ServerFailed(f"more than {MAX_REQUEST_S:g} s")
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise ServerFailed(type(error).__name__) from error
    finally:
        connection.close()


def _resolve_in_time(host: str, deadline: Deadline, allows_loopback: bool) -> str:
    """Return ``resolve_public`` of a host. The resolver takes no time limit, so a thread asks it.
    Raises ServerFailed."""
    answers: list[str | ServerFailed] = []

    def resolve() -> None:
        try:
            answers.append(resolve_public(host, allows_loopback=allows_loopback))
        except ServerFailed as error:
            answers.append(error)

    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(min(TIMEOUT_S, deadline.left_s))
    answer = answers[0] if answers else ServerFailed("its host has no address in time")
    if isinstance(answer, ServerFailed):
        raise answer
    return answer


@contextmanager
def _connected(address: str, port: int, deadline: Deadline) -> Iterator[socket.socket]:
    """Yield a connection that is shut down at the deadline, however slowly bytes arrive."""
    plain = socket.create_connection((address, port), min(TIMEOUT_S, deadline.left_s))
    # TLS takes over the descriptor of the socket; a copy of it can still end the connection.
    copy = socket.socket(fileno=os.dup(plain.fileno()))

    def end() -> None:
        with suppress(OSError):
            copy.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(deadline.left_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield plain
    finally:
        timer.cancel()
        plain.close()
        copy.close()
