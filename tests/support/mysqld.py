"""MySQL instead of MariaDB in tests: ``PLAZA_TEST_MYSQLD=/usr/sbin/mysqld``."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from local.stack.ports import free_port
from local.stack.processes import run_command
from local.stack.servers import TEST_SETTINGS, Server


def prepare_mysqld(mysqld: str, directory: Path) -> Server:
    """Prepare MySQL 8 or later, as ``local.stack.servers.prepare_mysql`` prepares MariaDB."""
    (directory / "tmp").mkdir(parents=True, exist_ok=True)
    port, password = free_port(), secrets.token_hex(16)
    lines = [
        "[mysqld]",
        *(["user = root"] if os.geteuid() == 0 else []),
        f"datadir = {directory / 'data'}",
        f"tmpdir = {directory / 'tmp'}",
        "bind-address = 127.0.0.1",
        f"port = {port}",
        "socket = mysqld.sock",
        "mysqlx = 0",
        "secure-file-priv = NULL",
        f"pid-file = {directory / 'mysqld.pid'}",
        "skip-name-resolve",
        "log-bin = binlog",
        "server-id = 1",
        "performance-schema = OFF",
        "character-set-server = utf8mb4",
        "default-time-zone = +00:00",
        "innodb-buffer-pool-size = 256M",
        "innodb-flush-log-at-trx-commit = 2",
        "innodb-doublewrite = 0",
        "sync-binlog = 0",
        "max-connections = 200",
        *TEST_SETTINGS,
    ]
    (directory / "my.cnf").write_text("\n".join(lines) + "\n")
    (directory / "init.sql").touch(mode=0o600)
    (directory / "init.sql").write_text(
        "SET SESSION sql_log_bin = 0;\n"
        "CREATE DATABASE IF NOT EXISTS plaza CHARACTER SET utf8mb4;\n"
        f"CREATE USER IF NOT EXISTS plaza@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON *.* TO plaza@'127.0.0.1' WITH GRANT OPTION;\n"
    )
    settings = f"--defaults-file={directory / 'my.cnf'}"
    log = directory.parent / "logs" / "mysqld-initialize.log"
    run_command("mysqld --initialize", [mysqld, settings, "--initialize-insecure"], log=log)
    url = f"mysql://plaza:{password}@127.0.0.1:{port}/plaza"
    argv = (mysqld, settings, f"--init-file={directory / 'init.sql'}")
    return Server("mysql", directory, port, url, argv)
