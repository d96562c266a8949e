"""The check of a deployed environment passes on a healthy one, and fails on another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from infra import smoke
from infra.smoke import Client, SmokeError


@pytest.mark.parametrize("step", smoke.STEPS, ids=lambda step: step.__name__)
def test_a_step_passes(
    base_url: str, sign_in: Callable[..., str], step: Callable[[Client, ExitStack], None]
) -> None:
    client = Client(base_url, sign_in(9_300_001, role="admin"))
    with ExitStack() as created:
        step(client, created)


def test_a_user_who_is_no_admin_can_not_run_it(base_url: str, sign_in: Callable[..., str]) -> None:
    with pytest.raises(SmokeError, match="403"):
        smoke.check(Client(base_url, sign_in(9_300_002)), lambda _: None)


def test_an_environment_that_does_not_answer_fails() -> None:
    with pytest.raises(SmokeError, match="no answer"):
        smoke.check(Client("http://127.0.0.1:1", "token"), lambda _: None)
