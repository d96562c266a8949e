"""Servers of the stack in a directory as people name them."""

from __future__ import annotations

from pathlib import Path

from local.stack.servers import connect_mysql, prepare_mysql, prepare_redis, run_server


def test_servers_run_in_a_path_with_a_space(tmp_path: Path) -> None:
    directory = tmp_path / "my apps"
    (directory / "logs").mkdir(parents=True)
    with (
        run_server(prepare_redis(directory / "redis")),
        run_server(prepare_mysql(directory / "mysql", for_tests=True)) as server,
        connect_mysql(server.url) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
