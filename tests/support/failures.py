"""Functions that fail, and the death of a process in the middle of its work."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn


class Killed(BaseException):
    """The process is dead: no error handler may catch this."""


def failing(error: BaseException | type[BaseException]) -> Callable[..., NoReturn]:
    """Return a function that raises ``error``, with whatever it is called."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail
