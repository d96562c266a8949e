"""One stack for all processes of the tests, and turns of the tests on it.

Tests run side by side on the stack, except those that are marked ``alone``: they stop a store,
throw a switch, or audit when nothing is in transit. Locks are those of files, which end with the
process that holds them.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from local.stack.stack import Stack


@contextmanager
def share(directory: Path, start: Callable[[], AbstractContextManager[Stack]]) -> Iterator[Stack]:
    """Yield the stack of all processes that share ``directory``. The first that comes starts it,
    and ends it when the others have left."""
    place, start_lock, users = (directory / f"stack.{name}" for name in ("place", "start", "users"))
    with ExitStack() as used:
        with lock(start_lock):
            if place.exists():
                used.enter_context(lock(users, fcntl.LOCK_SH))
                stack = Stack.load(Path(place.read_text()))
            else:
                stack = used.enter_context(start())
                place.write_text(str(stack.directory))
                used.callback(_withdraw, place, start_lock, users)
        yield stack


def _withdraw(place: Path, start_lock: Path, users: Path) -> None:
    """Wait until the other processes have left, and let the next one start a stack of its own."""
    with lock(start_lock), lock(users):
        place.unlink()


@contextmanager
def turn(directory: Path, *, alone: bool) -> Iterator[None]:
    """Run the block beside those of other processes, or alone. One that waits to be alone holds
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
