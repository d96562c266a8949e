"""The whole stack, once per run: the real template, deployed to an emulator on this machine.

It lives in ``.local-test`` and may run beside a ``make run``.
"""

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from local.paths import ROOT
from local.stack import Stack


@pytest.fixture(scope="session")
def stack(pytestconfig: pytest.Config) -> Iterator[Stack]:
    """A running stack; what it started is ended even when it did not come up."""
    stack = Stack(ROOT / ".local-test")
    stack.down()  # what a run that was killed may have left
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\nstarting the stack in .local-test ...", flush=True)
    try:
        stack.up(for_tests=True)
        yield stack
    finally:
        stack.down()


@pytest.fixture(scope="session")
def base_url(stack: Stack) -> str:
    """Where the HTTP API is, without a slash at the end."""
    return stack.base_url


@pytest.fixture(scope="session")
def sign_in(stack: Stack) -> Callable[..., str]:
    """``sign_in(7)`` or ``sign_in(7, role="admin")``: a session token; the user is created.

    A process of its own asks for it: this one may have read other settings already.
    """

    @functools.cache
    def open_one(user_id: int, role: str = "user") -> str:
        command = [sys.executable, "-m", "local", "--dir", str(stack.directory), "token"]
        asked = [*command, "--user", str(user_id), "--role", role]
        done = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    return open_one
