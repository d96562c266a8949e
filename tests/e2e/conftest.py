"""The whole stack, once in each process of the tests: the template, deployed to an emulator on this
machine."""

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any
from unittest import mock

import pytest
from playwright.sync_api import Browser

from cli.paths import ROOT
from local.stack.packages import find_browser
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from tests.e2e.browser import AppPage, describe_session, open_browser, open_context
from tests.e2e.client import Client
from tests.e2e.stack_runner import add_content, run_stack

OpenApp = Callable[..., AppPage]
_ids = count(6_000_001)


@pytest.fixture(scope="session")
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A running stack with the demo's first post, which no other process uses."""
    directory = tmp_path_factory.mktemp("stack")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\nstarting the stack in {directory} ...", flush=True)
    with run_stack(directory) as started:
        yield started


@pytest.fixture(scope="module", autouse=True)
def _settings_of_the_stack_end_with_the_file() -> Iterator[None]:
    """An audit reads the settings of the stack into this process, which may run other tests."""
    with mock.patch.dict(os.environ):
        yield


@pytest.fixture(scope="session")
def base_url(stack: Stack) -> str:
    """The URL of the HTTP API, without a trailing slash."""
    return stack.base_url


class Tokens:
    """A process that opens sessions, because this one may have read other settings of Plaza."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._process: subprocess.Popen[str] | None = None

    def open(self, user_id: int, role: str) -> str:
        """Return a session token. A process that an outage ended is replaced once."""
        token = self._request_token(user_id, role)
        if not token:
            self.close()
            token = self._request_token(user_id, role)
        assert token, f"no session for user {user_id}"
        return token

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate(timeout=30)
            self._process = None

    def _request_token(self, user_id: int, role: str) -> str:
        if self._process is None:
            command = [sys.executable, "-m", "tests.e2e.token_process", str(self._stack.directory)]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(f"{user_id} {role}\n")
            stdin.flush()
        except BrokenPipeError:
            return ""
        return stdout.readline().strip()


@pytest.fixture(scope="session")
def tokens(stack: Stack) -> Iterator[Tokens]:
    """``tokens.open(7, "user")`` creates the user, if there is none, and opens a new session."""
    opened = Tokens(stack)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def sign_in(tokens: Tokens) -> Callable[..., str]:
    """``sign_in(7)`` or ``sign_in(7, role="admin")`` creates the user and returns a token."""

    @functools.cache
    def open_one(user_id: int, role: str = "user") -> str:
        return tokens.open(user_id, role)

    return open_one


@pytest.fixture
def dead_reactions(stack: Stack) -> Iterator[Callable[..., None]]:
    """``dead_reactions(body, request_id=...)`` puts a message into the DLQ of reactions, which is
    purged after the test."""
    sqs, url = stack.connect("sqs"), stack.queues["reactions_dlq"]

    def put(body: str, **attributes: str) -> None:
        typed = {k: {"DataType": "String", "StringValue": v} for k, v in attributes.items()}
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=typed)

    yield put
    sqs.purge_queue(QueueUrl=url)


@pytest.fixture
def rows(stack: Stack) -> Callable[..., tuple[Any, ...]]:
    """``rows(sql, *args)`` executes a statement on a new connection and returns its rows."""
    return functools.partial(execute, stack)


@pytest.fixture
def add(stack: Stack) -> Callable[..., int]:
    """``add(content_type, deleted)`` creates content without reactions and returns its id."""

    def make(content_type: str = "post", deleted: bool = False) -> int:
        content_id = next(_ids)
        add_content(stack, content_type, content_id, deleted)
        return content_id

    return make


def execute(stack: Stack, sql: str, *args: object) -> tuple[Any, ...]:
    """Execute a statement on a new connection, and return its rows."""
    with connect_mysql(stack.mysql_url) as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        cursor.execute(sql, args)
        return tuple(cursor.fetchall())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser; not for the whole run, because its event loop would serve all tests."""
    chromium = find_browser()
    assert chromium is not None
    with open_browser(chromium) as opened:
        yield opened


@pytest.fixture
def open_app(browser: Browser, stack: Stack, sign_in: Callable[..., str]) -> Iterator[OpenApp]:
    """``open_app(path, user_id, refused)`` shows a page; anonymously without a user.

    ``site``: ``/console`` for the console. At the end of the test each page's console must be
    empty, and exactly the statuses ``refused`` must have been refused.
    """
    opened: list[tuple[AppPage, set[int]]] = []

    def open_one(
        path: str,
        user_id: int | None = None,
        refused: tuple[int, ...] = (),
        *,
        role: str = "user",
        site: str = "",
        **options: Any,
    ) -> AppPage:
        session = user_id and describe_session(
            sign_in(user_id, role=role), user_id, f"user {user_id}"
        )
        context = open_context(browser, stack.web_url, session or None, **options)
        app = AppPage(context.new_page(), stack.web_url + site)
        opened.append((app, set(refused)))
        # The emulator answers for some 40 queues one by one, and not always within the second that
        # a page waits; it asks again.
        app.allow(503, "/ops/queues")
        app.open(path)
        return app

    yield open_one
    for app, refused in opened:
        # A handler may be reading an answer; a request that a test holds is never answered, so
        # waiting for all of them could take for ever.
        app.page.unroute_all(behavior="ignoreErrors")
        app.page.context.close()
        assert (app.errors, app.refused) == ([], refused)


@pytest.fixture
def anonymous(base_url: str) -> Client:
    """A client without a token."""
    return Client(base_url)


@pytest.fixture
def user(base_url: str, sign_in: Callable[..., str]) -> Callable[[int], Client]:
    """``user(7)`` returns a client that is signed in as user 7."""
    return lambda user_id: Client(base_url, sign_in(user_id))


@pytest.fixture
def admin(request: pytest.FixtureRequest, base_url: str, sign_in: Callable[..., str]) -> Client:
    """A client of the admin of a module, ``ADMIN``."""
    return Client(base_url, sign_in(request.module.ADMIN, role="admin"))


@pytest.fixture
def make_users(
    request: pytest.FixtureRequest, user: Callable[[int], Client]
) -> Callable[[int], list[tuple[int, Client]]]:
    """``make_users(3)`` creates three users of a module's ``IDS``; returns (id, client) of each."""
    return lambda number: [
        (user_id, user(user_id)) for user_id in islice(request.module.IDS, number)
    ]
