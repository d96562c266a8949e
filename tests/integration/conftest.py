"""Settings for one test, and servers that are unavailable for one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from moto import mock_aws

from local.stack.servers import Server
from plaza.infra.queues import sqs
from plaza.infra.runtime.process import reset_process
from tests.support.audits import Audit
from tests.support.moto_server import serving_aws
from tests.support.plaza import World, forget


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


@pytest.fixture
def audit(redis_url: str, mysql_url: str, plaza: World) -> Audit:
    return Audit(redis_url, mysql_url)


@pytest.fixture
def moto_sqs() -> Iterator[Any]:
    """A client of an SQS in memory, which this process uses, too. Nothing else is there."""
    # It ends before `mock_aws`, which has replaced the credentials of this process.
    with mock_aws(), serving_aws() as url, pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "PLAZA_ENVIRONMENT": "local",
            "PLAZA_REDIS_URL": "redis://nowhere",
            "PLAZA_MYSQL_URL": "mysql://nobody@nowhere/plaza",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_SQS": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
        }.items():
            patch.setenv(name, value)
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        reset_process()
        yield sqs.client()
    reset_process()
