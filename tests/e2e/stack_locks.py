"""Turns of the tests on the stack that their processes share.

Tests run side by side on the stack, except those that are marked ``alone``: they stop a store,
throw a switch, or audit when nothing is in transit. Locks are locks of files, which end with the
process that holds them.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def turn(directory: Path, *, alone: bool) -> Iterator[None]:
    """Run the block beside other processes', or alone. One that waits to be alone holds
    back those that come later."""
    with ExitStack() as entering:
        entering.enter_context(lock(directory / "stack.door"))
        with lock(directory / "stack.room", fcntl.LOCK_EX if alone else fcntl.LOCK_SH):
            if not alone:
                entering.close()
            yield


@contextmanager
def lock(path: Path, kind: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Wait for the lock of a file, and hold it."""
    with path.open("a") as file:
        fcntl.flock(file, kind)
        yield
