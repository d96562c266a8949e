"""The clients: ``Plaza``, and ``AsyncPlaza`` for asyncio and Trio."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, cast

import anyio
import httpx
from typing_extensions import Self, Unpack

from plaza_client import models
from plaza_client.calls import (
    TIMEOUT_S,
    Caller,
    KeyedOptions,
    Options,
    Reply,
    Retry,
    Steps,
    build_request,
    buy,
    check_base_url,
    check_header,
    check_timeout,
    send_call,
    wait_for_order,
)
from plaza_client.errors import PlazaError
from plaza_client.lists import AsyncListed, Listed
from plaza_client.resources import AsyncResources, Resources

SERVER_KEY = "sk_"


def _read_target(target: Mapping[str, Any]) -> tuple[str, str]:
    """Return the type and the id of a target. Raises PlazaError if one is missing."""
    try:
        return str(target["type"]), str(target["id"])
    except KeyError as error:
        raise PlazaError(f"The target has no {error.args[0]}.") from error


class _Base:
    """What both clients are: a caller, and connections that its copies share."""

    def __init__(
        self, base_url: str, token: str | None, timeout_s: float, retry: Retry | None
    ) -> None:
        self._caller = Caller(
            check_base_url(base_url),
            None if token is None else check_header("token", token),
            None,
            check_timeout(timeout_s),
            retry or Retry(),
        )

    def act_as(self, user: str) -> Self:
        """Return a client that acts for a user, over the same connections.

        ``user``: the id of a user, or ``<issuer>|<subject>``, which becomes a user by its first
        act. Raises PlazaError if the token of this client is no key of a server.
        """
        if not (self._caller.token or "").startswith(SERVER_KEY):
            raise PlazaError(f"act_as needs a key of a server: a token that begins {SERVER_KEY}.")
        return self._copy(replace(self._caller, user=check_header("user", user)))

    def with_token(self, token: str | None) -> Self:
        """Return a client with another token, or without one, over the same connections."""
        checked = None if token is None else check_header("token", token)
        return self._copy(replace(self._caller, token=checked, user=None))

    def _copy(self, caller: Caller) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__, _caller=caller)
        return copy

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._caller.base_url!r})"


class Plaza(_Base, Resources):
    """A client of one deployment of Plaza. All threads of a process may share one.

    It never changes its caller: ``act_as`` and ``with_token`` return another client.

    ``token``: of a session, or a key of a server; None: anonymous. ``transport`` replaces the
    network, as ``plaza_client.testing`` does. Raises PlazaError for what cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retry: Retry | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(base_url, token, timeout_s, retry)
        self._http = httpx.Client(transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, of this client and of its copies."""
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str | None] | None = None,
        keyed: bool = False,
        **options: Unpack[KeyedOptions],
    ) -> Reply:
        """Send a request of the contract and return its response, with status and headers.

        ``path`` has its ``parameters`` in braces: ``/posts/{post_id}``. ``keyed``: a creation,
        which takes an ``Idempotency-Key``. Raises ProblemError, NetworkError.
        """
        steps = send_call(
            self._caller,
            self._http,
            method,
            path,
            parameters=parameters,
            query=query,
            body=body,
            headers=headers,
            options=options,
            keyed=keyed,
        )
        return self._run(steps)

    def send_once(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | Mapping[str, bytes] | None = None,
        **options: Unpack[Options],
    ) -> httpx.Response:
        """Send a request as it is, once, and return whatever is answered.

        ``headers`` replace the client's own. Raises httpx.RequestError.
        """
        url = self._caller.base_url + path
        return self._http.send(
            build_request(self._caller, self._http, method, url, headers or {}, content, options)
        )

    def react(
        self, target: Mapping[str, Any], kind: str, **options: Unpack[Options]
    ) -> models.ReactionResponse:
        """React to a target, which has a ``type`` and an ``id``: ``{"type": "post", "id": "12"}``.

        ``kind``: like, collect, follow, or a kind of the deployment. Repeated, it counts once.
        """
        return self.reactions.set(*_read_target(target), kind, **options)

    def unreact(
        self, target: Mapping[str, Any], kind: str, **options: Unpack[Options]
    ) -> models.ReactionResponse:
        """Take a reaction back. Repeated, it changes nothing."""
        return self.reactions.remove(*_read_target(target), kind, **options)

    def buy(self, voucher_id: str, **options: Unpack[Options]) -> models.OrderResponse:
        """Order one unit and wait until the order is decided. Repeated, it is the same order."""
        return self._order(buy(self._caller, self._http, voucher_id, options))

    def wait_for_order(self, order_id: str, **options: Unpack[Options]) -> models.OrderResponse:
        """Ask for an order, at the pace of ``Retry-After``, until it is decided."""
        return self._order(wait_for_order(self._caller, self._http, order_id, options))

    def _order(self, steps: Steps) -> models.OrderResponse:
        return cast("models.OrderResponse", self._run(steps).body)

    def _call(self, method: str, path: str, **request: Any) -> Any:
        return self._run(send_call(self._caller, self._http, method, path, **request)).body

    def _list(self, path: str, *, query: Mapping[str, object], **request: Any) -> Any:
        def read(cursor: str | None) -> Any:
            position = {} if cursor is None else {"cursor": cursor}
            return self._call("GET", path, query={**query, **position}, **request)

        return Listed[Any, Any](read)

    def _run(self, steps: Steps) -> Reply:
        try:
            step = next(steps)
            while True:
                if not isinstance(step, httpx.Request):
                    time.sleep(step)
                    step = next(steps)
                    continue
                try:
                    response = self._http.send(step)
                except httpx.RequestError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
        except StopIteration as ended:
            return cast("Reply", ended.value)


class AsyncPlaza(_Base, AsyncResources):
    """A client of one deployment of Plaza. All tasks of an event loop may share one.

    It never changes its caller: ``act_as`` and ``with_token`` return another client.

    ``token``: of a session, or a key of a server; None: anonymous. ``transport`` replaces the
    network, as ``plaza_client.testing`` does. Raises PlazaError for what cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retry: Retry | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(base_url, token, timeout_s, retry)
        self._http = httpx.AsyncClient(transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, of this client and of its copies."""
        await self._http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str | None] | None = None,
        keyed: bool = False,
        **options: Unpack[KeyedOptions],
    ) -> Reply:
        """Send a request of the contract and return its response, with status and headers.

        ``path`` has its ``parameters`` in braces: ``/posts/{post_id}``. ``keyed``: a creation,
        which takes an ``Idempotency-Key``. Raises ProblemError, NetworkError.
        """
        steps = send_call(
            self._caller,
            self._http,
            method,
            path,
            parameters=parameters,
            query=query,
            body=body,
            headers=headers,
            options=options,
            keyed=keyed,
        )
        return await self._run(steps)

    async def send_once(
        self,
        method: str,
        path: str,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | Mapping[str, bytes] | None = None,
        **options: Unpack[Options],
    ) -> httpx.Response:
        """Send a request as it is, once, and return whatever is answered.

        ``headers`` replace the client's own. Raises httpx.RequestError.
        """
        url = self._caller.base_url + path
        return await self._http.send(
            build_request(self._caller, self._http, method, url, headers or {}, content, options)
        )

    async def react(
        self, target: Mapping[str, Any], kind: str, **options: Unpack[Options]
    ) -> models.ReactionResponse:
        """React to a target, which has a ``type`` and an ``id``: ``{"type": "post", "id": "12"}``.

        ``kind``: like, collect, follow, or a kind of the deployment. Repeated, it counts once.
        """
        return await self.reactions.set(*_read_target(target), kind, **options)

    async def unreact(
        self, target: Mapping[str, Any], kind: str, **options: Unpack[Options]
    ) -> models.ReactionResponse:
        """Take a reaction back. Repeated, it changes nothing."""
        return await self.reactions.remove(*_read_target(target), kind, **options)

    async def buy(self, voucher_id: str, **options: Unpack[Options]) -> models.OrderResponse:
        """Order one unit and wait until the order is decided. Repeated, it is the same order."""
        return await self._order(buy(self._caller, self._http, voucher_id, options))

    async def wait_for_order(
        self, order_id: str, **options: Unpack[Options]
    ) -> models.OrderResponse:
        """Ask for an order, at the pace of ``Retry-After``, until it is decided."""
        return await self._order(wait_for_order(self._caller, self._http, order_id, options))

    async def _order(self, steps: Steps) -> models.OrderResponse:
        return cast("models.OrderResponse", (await self._run(steps)).body)

    async def _call(self, method: str, path: str, **request: Any) -> Any:
        return (await self._run(send_call(self._caller, self._http, method, path, **request))).body

    def _list(self, path: str, *, query: Mapping[str, object], **request: Any) -> Any:
        async def read(cursor: str | None) -> Any:
            position = {} if cursor is None else {"cursor": cursor}
            return await self._call("GET", path, query={**query, **position}, **request)

        return AsyncListed[Any, Any](read)

    async def _run(self, steps: Steps) -> Reply:
        try:
            step = next(steps)
            while True:
                if not isinstance(step, httpx.Request):
                    await anyio.sleep(step)
                    step = next(steps)
                    continue
                try:
                    response = await self._http.send(step)
                except httpx.RequestError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
        except StopIteration as ended:
            return cast("Reply", ended.value)
