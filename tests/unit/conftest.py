"""Unit tests have no sockets: what needs one is not a unit."""

from collections.abc import Iterator

import pytest
from pytest_socket import disable_socket, enable_socket


@pytest.fixture(autouse=True)
def no_sockets() -> Iterator[None]:
    """Opening a socket raises SocketBlockedError (Unix sockets stay: event loops need them)."""
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()
