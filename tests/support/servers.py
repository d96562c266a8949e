"""A real Redis and a real MariaDB for tests: private, quick to start, surely ended.

A plugin (see pyproject.toml), so that every test may ask for ``redis_url`` and ``mysql_url``.
The database ``plaza`` is empty: who needs tables applies the migrations. The Redis is a cluster
with PLAZA_TEST_REDIS=cluster (`make test-cluster`); with PLAZA_TEST_MYSQLD=/path/to/mysqld it is
that MySQL in place of MariaDB.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.stack import cluster, servers
from tests.support.mysqld import prepare_mysqld

IS_CLUSTER = os.environ.get("PLAZA_TEST_REDIS") == "cluster"
MYSQLD = os.environ.get("PLAZA_TEST_MYSQLD")
# So long that a busy machine makes no master seem dead; who tests a failover sets its own.
_PATIENCE_MS = 15_000


@pytest.fixture(scope="session")
def redis_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[servers.Server | cluster.Cluster]:
    """A Redis of this run's own; ``stop``, ``start``, ``pause`` and ``resume`` it at will."""
    directory: Path = tmp_path_factory.mktemp("redis") / "redis"
    if IS_CLUSTER:
        with servers.run_server(
            cluster.prepare_cluster(directory, node_timeout_ms=_PATIENCE_MS)
        ) as nodes:
            yield nodes
    else:
        with servers.run_server(servers.prepare_redis(directory)) as server:
            yield server


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """A MariaDB of this run's own, with an empty database ``plaza``."""
    directory: Path = tmp_path_factory.mktemp("mysql") / "mysql"
    prepared = (
        prepare_mysqld(MYSQLD, directory)
        if MYSQLD
        else servers.prepare_mysql(directory, for_tests=True)
    )
    with servers.run_server(prepared) as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(redis_server: servers.Server | cluster.Cluster) -> str:
    """``redis://127.0.0.1:port/0``; of a cluster with all ports, separated by commas."""
    return redis_server.url


@pytest.fixture(scope="session")
def mysql_url(mysql_server: servers.Server) -> str:
    """``mysql://user:password@127.0.0.1:port/plaza``"""
    return mysql_server.url
