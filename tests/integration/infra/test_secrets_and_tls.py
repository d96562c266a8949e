"""Logins from Secrets Manager and verified TLS, with Redis, a Redis Cluster and MariaDB."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

from local.stack.ports import free_port
from local.stack.servers import Server, connect_mysql, prepare_mysql, prepare_redis, run_server
from plaza.infra.aws import secrets, tls
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.mysql import binlog, mysql
from plaza.infra.mysql.mysql import Cursor, MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.settings import BadSettings
from tests.support.certificates import Certificates, make_certificates
from tests.support.plaza import forget
from tests.support.servers import read_redis_access

SetUp = Callable[..., None]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls") / "right")


@pytest.fixture(scope="module")
def other_ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("tls") / "wrong").ca


@pytest.fixture
def set_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[SetUp]:
    """``set_up(redis_url=...)``: settings of a process without stores, for one test."""

    def change(**values: object) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"PLAZA_{name.upper()}", str(value))
        forget()

    for name in ("redis", "mysql"):
        monkeypatch.setenv(f"PLAZA_{name.upper()}_SECRET_ID", f"plaza/{name}")
    change(
        environment="local", redis_url="redis://nowhere", mysql_url="mysql://nowhere/plaza",
        redis_timeout_s=5,
    )  # fmt: skip
    yield change
    forget()


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, str]]:
    """Secrets Manager: secret id -> user and password. A secret that is missing is unreadable."""
    logins: dict[str, tuple[str, str]] = {}

    def fetch(secret_id: str) -> str:
        if secret_id not in logins:
            raise SecretsDown("Secrets Manager is unavailable")
        return json.dumps(dict(zip(("username", "password"), logins[secret_id], strict=True)))

    monkeypatch.setattr(secrets, "_fetch", fetch)
    return logins


def count_fetches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the secrets that are fetched from here on."""
    fetched, fetch = [], secrets._fetch

    def count(secret_id: str) -> str:
        fetched.append(secret_id)
        return fetch(secret_id)

    monkeypatch.setattr(secrets, "_fetch", count)
    return fetched


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret may be read again at once."""
    monkeypatch.setattr(secrets, "MIN_REFRESH_S", 0)


def prepare_redis_with_tls(directory: Path, certificates: Certificates, *settings: str) -> Server:
    tls_port = free_port()
    server = prepare_redis(
        directory,
        settings=[
            f"tls-port {tls_port}",
            f"tls-cert-file {certificates.cert}",
            f"tls-key-file {certificates.key}",
            f"tls-ca-cert-file {certificates.ca}",
            "tls-auth-clients no",
            "user default off",
            "user root on >root ~* &* +@all",
            *settings,
        ],
    )
    server.port = tls_port
    return server


@pytest.fixture(scope="module", params=["single", "cluster"])
def redis_over_tls(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    certificates: Certificates,
) -> Iterator[tuple[Server, bool]]:
    directory = tmp_path_factory.mktemp(request.param) / "redis"
    is_cluster = request.param == "cluster"
    settings = (
        ["cluster-enabled yes", "tls-cluster yes", f"cluster-port {free_port()}"]
        if is_cluster
        else []
    )
    with run_server(prepare_redis_with_tls(directory, certificates, *settings)) as server:
        if is_cluster:
            as_root(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
            deadline_s = time.monotonic() + 20
            while "cluster_state:ok" not in str(as_root(server, "CLUSTER", "INFO")):
                assert time.monotonic() < deadline_s
                time.sleep(0.02)
        yield server, is_cluster


def as_root(server: Server, *command: str) -> Any:
    """Run a command over the port without TLS."""
    with redis_py.Redis.from_url(server.url, username="root", password="root") as client:
        return client.execute_command(*command)


def set_redis_password(server: Server, password: str) -> None:
    rules = [*read_redis_access().split(), "+acl|whoami"]
    as_root(server, "ACL", "SETUSER", "app", "reset", *rules, f">{password}")


@pytest.fixture
def use_redis(
    redis_over_tls: tuple[Server, bool],
    certificates: Certificates,
    set_up: SetUp,
    stored: dict[str, tuple[str, str]],
) -> Callable[..., Server]:
    """``use_redis(host=..., ca=...)``: let this process use that Redis, with the right password."""
    server, is_cluster = redis_over_tls

    def use(host: str = "127.0.0.1", ca: Path | None = None) -> Server:
        set_redis_password(server, "one")
        stored["plaza/redis"] = ("app", "one")
        url = f"rediss://{host}:{server.port}/0"
        set_up(redis_url=url, redis_cluster=int(is_cluster), redis_ca=ca or certificates.ca)
        return server

    return use


def test_redis_is_used_over_tls_with_a_login_from_secrets_manager(
    use_redis: Callable[..., Server],
) -> None:
    use_redis()
    assert redis.pipeline([("SET", "{a}", "1"), ("GET", "{a}")]) == [True, "1"]
    [node] = redis.nodes().values()
    assert redis.send_to_node(node, [("ACL", "WHOAMI")]) == ["app"]


@pytest.mark.parametrize("wrong", ["ca", "host"])
def test_a_redis_with_a_wrong_certificate_is_down(
    use_redis: Callable[..., Server], other_ca: Path, wrong: str
) -> None:
    """The certificate is for 127.0.0.1, not for the name 127.1."""
    if wrong == "ca":
        use_redis(ca=other_ca)
    else:
        use_redis(host="127.1")
    with pytest.raises(RedisDown):
        redis.execute("GET", "{a}")


def test_a_rotated_password_of_redis_is_read_again(
    use_redis: Callable[..., Server], stored: dict[str, tuple[str, str]], later: None
) -> None:
    """Given that rotation closed the connections, the process logs in again without a restart."""
    server = use_redis()
    redis.execute("SET", "{a}", "1")
    stored["plaza/redis"] = ("app", "two")
    set_redis_password(server, "two")
    as_root(server, "CLIENT", "KILL", "USER", "app")
    assert redis.execute("GET", "{a}") == "1"


def test_an_open_connection_to_redis_outlives_a_rotation(
    use_redis: Callable[..., Server], stored: dict[str, tuple[str, str]]
) -> None:
    server = use_redis()
    redis.execute("SET", "{a}", "1")
    del stored["plaza/redis"]
    set_redis_password(server, "two")
    assert redis.execute("GET", "{a}") == "1"


def test_a_refused_login_to_redis_reads_the_secret_once_in_some_seconds(
    use_redis: Callable[..., Server],
    stored: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = use_redis()
    set_redis_password(server, "two")
    fetched = count_fetches(monkeypatch)
    for _ in range(3):
        with pytest.raises(RedisDown):
            redis.execute("GET", "{a}")
    assert fetched == ["plaza/redis"]
    stored["plaza/redis"] = ("app", "two")
    forget()
    assert redis.execute("GET", "{b}") is None


def test_redis_is_down_while_its_secret_can_not_be_read(
    use_redis: Callable[..., Server], stored: dict[str, tuple[str, str]]
) -> None:
    use_redis()
    login = stored.pop("plaza/redis")
    with pytest.raises(RedisDown):
        redis.execute("GET", "{b}")
    stored["plaza/redis"] = login
    assert redis.execute("GET", "{b}") is None, "no connection without a login is left"


@pytest.fixture(scope="module")
def mysql_over_tls(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("mysql-tls") / "mysql"
    server = prepare_mysql(directory, for_tests=True)
    with (directory / "my.cnf").open("a") as file:
        file.write(f"ssl-cert = {certificates.cert}\nssl-key = {certificates.key}\n")
    with (directory / "init.sql").open("a") as file:
        file.write(
            "CREATE USER IF NOT EXISTS admin@'127.0.0.1' IDENTIFIED BY 'admin';\n"
            "GRANT ALL ON *.* TO admin@'127.0.0.1' WITH GRANT OPTION;\n"
        )
    with run_server(server):
        yield server


def as_admin(server: Server, *statements: str) -> None:
    connection = connect_mysql(f"mysql://admin:admin@127.0.0.1:{server.port}/plaza")
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def set_mysql_password(server: Server, password: str) -> None:
    as_admin(
        server,
        f"CREATE OR REPLACE USER app@'127.0.0.1' IDENTIFIED BY '{password}' REQUIRE SSL",
        "GRANT ALL ON *.* TO app@'127.0.0.1'",
    )


@pytest.fixture
def use_mysql(
    mysql_over_tls: Server,
    certificates: Certificates,
    set_up: SetUp,
    stored: dict[str, tuple[str, str]],
) -> Callable[..., Server]:
    """``use_mysql(host=..., ca=...)``: let this process use that MariaDB over TLS."""

    def use(host: str = "127.0.0.1", ca: Path | str | None = None, options: str = "") -> Server:
        set_mysql_password(mysql_over_tls, "one")
        stored["plaza/mysql"] = ("app", "one")
        ca = certificates.ca if ca is None else ca
        set_up(mysql_url=f"mysql://{host}:{mysql_over_tls.port}/plaza{options}", mysql_ca=ca)
        return mysql_over_tls

    return use


def test_mysql_is_used_over_verified_tls_with_a_login_from_secrets_manager(
    use_mysql: Callable[..., Server],
) -> None:
    use_mysql()
    [(_, cipher)] = mysql.fetch_all("SHOW STATUS LIKE 'Ssl_cipher'")
    assert cipher
    assert mysql.fetch_all("SELECT CURRENT_USER()") == [("app@127.0.0.1",)]


def test_a_packet_over_tls_has_all_results_and_the_slow_log_each_statement(
    use_mysql: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a result of many TLS records between two short ones."""
    monkeypatch.setenv("PLAZA_MYSQL_PACKETS", "1")
    server, long = use_mysql(), "REPEAT('x', 200000)"
    logged = "log_output = 'TABLE', GLOBAL long_query_time = 0, GLOBAL slow_query_log = {}"
    as_admin(server, f"SET GLOBAL {logged.format('ON')}")

    def work(cursor: Cursor) -> list[Any]:
        mysql.send(cursor, "SET @sent = 7")
        selects = ["SELECT @sent", f"SELECT {long}", "SHOW STATUS LIKE 'Ssl_cipher'"]
        return [*mysql.read_all(cursor, selects)]

    try:
        [[sent], [(text,)], [(_, cipher)]] = mysql.run_in_transaction(work)
        statements = "SELECT CONVERT(sql_text USING utf8mb4) FROM mysql.slow_log"
        logged_texts = {text.strip() for (text,) in mysql.fetch_all(statements)}
    finally:
        as_admin(server, f"SET GLOBAL {logged.format('OFF')}")
    assert (sent, len(text), bool(cipher)) == ((7,), 200_000, True)
    assert {"SELECT @sent", f"SELECT {long}"} <= logged_texts


@pytest.mark.parametrize("wrong", ["ca", "host", "system"])
def test_a_mysql_with_a_wrong_certificate_is_down(
    use_mysql: Callable[..., Server], other_ca: Path, wrong: str
) -> None:
    """The system's CAs did not sign it, and it is for 127.0.0.1, not for the name 127.1."""
    match wrong:
        case "ca":
            use_mysql(ca=other_ca)
        case "host":
            use_mysql(host="127.1")
        case _:
            use_mysql(ca="", options="?ssl-mode=VERIFY_IDENTITY")
    with pytest.raises(MysqlDown, match=r"certificate|mismatch"):
        mysql.fetch_all("SELECT 1")
    start = binlog.BinlogOffset("binlog.000001", 4)
    with pytest.raises(MysqlDown):
        next(binlog.read_changes(["t"], start, Deadline.in_s(5)))


def test_a_mysql_without_tls_is_refused_when_it_must_be_verified(
    mysql_url: str, certificates: Certificates, set_up: SetUp
) -> None:
    """A man in the middle could hide that the server has TLS. From 11.4 on MariaDB signs a
    certificate itself; test_mysql_errors.py has one without."""
    set_up(mysql_url=mysql_url, mysql_ca=certificates.ca)
    with pytest.raises(MysqlDown, match=r"2026|self-signed"):
        mysql.fetch_all("SELECT 1")


@pytest.mark.parametrize("reader", ["statement", "binlog"])
def test_a_rotated_password_of_mysql_is_read_again(
    use_mysql: Callable[..., Server],
    stored: dict[str, tuple[str, str]],
    later: None,
    reader: str,
) -> None:
    server = use_mysql()
    end = binlog.read_end()
    stored["plaza/mysql"] = ("app", "two")
    set_mysql_password(server, "two")
    if reader == "statement":
        mysql.forget_connection()
        assert mysql.fetch_all("SELECT 1") == [(1,)]
    else:
        batches = list(binlog.read_changes(["t"], end, Deadline.in_s(20)))
        assert batches[-1].end > end


def test_a_login_that_mysql_refuses_is_an_outage_and_reads_the_secret_once(
    use_mysql: Callable[..., Server],
    stored: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An outage spends no attempt of a message, which a rotation in two steps must not."""
    server = use_mysql()
    set_mysql_password(server, "two")
    fetched = count_fetches(monkeypatch)
    for _ in range(3):
        with pytest.raises(MysqlDown, match="1045"):
            mysql.fetch_all("SELECT 1")
    assert fetched == ["plaza/mysql"]
    now_s = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s + secrets.MIN_REFRESH_S)
    stored["plaza/mysql"] = ("app", "two")
    assert mysql.fetch_all("SELECT 1") == [(1,)]


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_file_without_certificates_is_a_bad_setting(
    tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(BadSettings, match=str(file)):
        tls.verifying_context(str(file))
