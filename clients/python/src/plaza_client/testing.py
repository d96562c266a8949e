"""A stand-in for the API, for the tests of an app: it answers from the examples of the contract.

```
transport = ExampleTransport()
plaza = Plaza("https://plaza.test", token="sk_test", transport=transport)
transport.refuse("vouchers.place_order", "sold-out")
```
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import httpx

PROBLEM = "application/problem+json"


class ExampleTransport(httpx.MockTransport):
    """The ``transport`` of a ``Plaza`` or an ``AsyncPlaza``. Operations have the names of their
    methods: ``posts.like``."""

    def __init__(self) -> None:
        super().__init__(self._respond)
        self.requests: list[httpx.Request] = []
        """All requests, oldest first."""
        self.names: list[str] = []
        """The operation of each request; an empty text for a path that the API does not have."""
        contract = json.loads((files("plaza_client") / "examples.json").read_bytes())
        self._operations: dict[str, dict[str, Any]] = contract["operations"]
        self._problems: dict[str, dict[str, Any]] = contract["problems"]
        self._patterns = [
            (item["method"], re.compile(re.sub(r"\{\w+\}", "[^/]+", item["path"])), name)
            for name, item in self._operations.items()
        ]
        self._planned: defaultdict[str, deque[httpx.Response | Exception]] = defaultdict(deque)
        self._fixed: dict[str, httpx.Response | Exception] = {}

    def answer(
        self,
        name: str,
        body: object = None,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        times: int | None = None,
    ) -> None:
        """Answer an operation with ``status``, by default the first that it has an example of, and
        ``body``, by default that example. ``times``: so often; None: always."""
        examples = self._of(name)["responses"]
        chosen = next(iter(examples)) if status is None else str(status)
        content = examples.get(chosen) if body is None else body
        self._plan(name, _make_response(int(chosen), content, dict(headers or {})), times)

    def refuse(
        self, name: str, slug: str, *, retry_after_s: float | None = None, times: int | None = None
    ) -> None:
        """Refuse an operation with a problem that it has in the contract."""
        known = self._of(name)["problems"]
        if slug not in known:
            raise LookupError(f"{name} has no problem {slug}, but {', '.join(known)}")
        headers = {} if retry_after_s is None else {"retry-after": str(retry_after_s)}
        self._plan(name, self._make_problem(slug, known[slug], headers), times)

    def fail(self, name: str, error: Exception | None = None, *, times: int | None = None) -> None:
        """Raise an error, by default a lost connection, instead of an answer."""
        self._of(name)
        self._plan(name, error or httpx.ConnectError("the stand-in lost it"), times)

    def _plan(self, name: str, answer: httpx.Response | Exception, times: int | None) -> None:
        if times is None:
            self._fixed[name] = answer
        else:
            self._planned[name].extend([answer] * times)

    def _of(self, name: str) -> dict[str, Any]:
        if name not in self._operations:
            raise LookupError(f"the contract has no operation {name}")
        return self._operations[name]

    def _respond(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.partition(b"?")[0].decode("ascii")
        name = next(
            (n for m, p, n in self._patterns if m == request.method and p.fullmatch(path)), ""
        )
        self.requests.append(request)
        self.names.append(name)
        if not name:
            return self._make_problem("not-found", None, {})
        if planned := self._planned[name]:
            answer = planned.popleft()
        elif name in self._fixed:
            answer = self._fixed[name]
        elif self._operations[name]["session"] and "authorization" not in request.headers:
            answer = self._make_problem("unauthenticated", None, {})
        else:
            status, content = next(iter(self._operations[name]["responses"].items()))
            if content and "next" in content and "cursor" in request.url.params:
                content = content | {"next": None}  # a list has two pages
            answer = _make_response(int(status), content, {})
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def _make_problem(
        self, slug: str, example: dict[str, Any] | None, headers: dict[str, str]
    ) -> httpx.Response:
        problem = example or self._problems[slug]
        return _make_response(problem["status"], problem, {"content-type": PROBLEM, **headers})


def _make_response(status: int, content: object, headers: dict[str, str]) -> httpx.Response:
    if content is None:
        return httpx.Response(status, headers=headers)
    common = {"content-type": "application/json"}
    return httpx.Response(status, headers=common | headers, content=json.dumps(content))
