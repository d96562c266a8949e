"""The check of a deployed environment passes on a healthy one, and fails on another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from deploy import smoke
from deploy.smoke import Client, SmokeError
from local.stack.servers import connect_mysql
from local.stack.stack import Stack


@pytest.mark.parametrize("step", smoke.STEPS, ids=lambda step: step.__name__)
def test_a_step_passes(
    base_url: str, sign_in: Callable[..., str], step: Callable[[Client, ExitStack], None]
) -> None:
    client = Client(base_url, sign_in(9_300_001, role="admin"))
    with ExitStack() as created:
        step(client, created)


@pytest.fixture(scope="module")
def later_schema(stack: Stack) -> Iterator[None]:
    """The schema after a deploy that migrated it and has not changed the functions: each table has
    a column more."""
    with connect_mysql(stack.mysql_url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
        )
        tables = [name for (name,) in cursor.fetchall()]
        for table in tables:
            cursor.execute(f"ALTER TABLE `{table}` ADD COLUMN later INT NULL")
        yield
        for table in tables:
            cursor.execute(f"ALTER TABLE `{table}` DROP COLUMN later")


@pytest.mark.parametrize("step", smoke.STEPS, ids=lambda step: step.__name__)
@pytest.mark.usefixtures("later_schema")
def test_a_step_passes_with_the_schema_of_a_later_version(
    base_url: str, sign_in: Callable[..., str], step: Callable[[Client, ExitStack], None]
) -> None:
    test_a_step_passes(base_url, sign_in, step)


def test_a_user_who_is_no_admin_can_not_run_it(base_url: str, sign_in: Callable[..., str]) -> None:
    with pytest.raises(SmokeError, match="403"):
        smoke.check(Client(base_url, sign_in(9_300_002)), lambda _: None)


def test_an_environment_that_does_not_answer_fails() -> None:
    with pytest.raises(SmokeError, match="no answer"):
        smoke.check(Client("http://127.0.0.1:1", "token"), lambda _: None)
