"""Settings for one test, and servers that are away for one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from local.servers import Server
from tests.plaza import World, forget


@pytest.fixture
def set_up(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``set_up(recent_cap=10)``: other settings from here to the end of the test."""

    def change(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"PLAZA_{name.upper()}", str(value))
        forget()

    return change


Away = Callable[[], AbstractContextManager[None]]


def _away(server: Server) -> Away:
    @contextmanager
    def away() -> Iterator[None]:
        server.stop()
        try:
            yield
        finally:
            server.start()
            forget()

    return away


@pytest.fixture
def redis_away(redis_server: Server) -> Away:
    """``with redis_away():`` Redis has ended, and comes back empty."""
    return _away(redis_server)


@pytest.fixture
def mysql_away(mysql_server: Server) -> Away:
    """``with mysql_away():`` MariaDB has ended, and comes back with its data."""
    return _away(mysql_server)
