"""Secrets are rotated without an outage: with Secrets Manager of moto, real MariaDB and Redis."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import boto3
import pytest
import redis as redis_py
from moto import mock_aws

from cli.paths import ROOT
from local.stack.servers import Server, prepare_redis, run_server
from plaza.infra.aws import secrets
from plaza.infra.mysql import mysql
from plaza.infra.mysql.database_users import PRIVILEGES, create_users
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.mysql.secret_rotation import rotate
from plaza.infra.redis import redis
from plaza.infra.runtime.settings import settings
from tests.support.moto_server import serving_aws
from tests.support.plaza import World, forget
from tests.support.servers import read_redis_access

STEPS = ("createSecret", "setSecret", "testSecret", "finishSecret")


@pytest.fixture
def store(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Secrets Manager. A process may read a secret again at once."""
    monkeypatch.undo()  # the secrets of other tests
    monkeypatch.setattr(secrets, "MIN_REFRESH_S", 0)
    with mock_aws(), serving_aws() as url:
        client = boto3.client("secretsmanager")
        monkeypatch.setattr(secrets, "connect", lambda: client)  # each takes long to create
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)  # of the other client
        yield client


def create(store: Any, name: str, text: str) -> str:
    return str(store.create_secret(Name=name, SecretString=text)["ARN"])


def read(store: Any, arn: str, stage: str = "AWSCURRENT") -> Any:
    return json.loads(store.get_secret_value(SecretId=arn, VersionStage=stage)["SecretString"])


def events(arn: str) -> list[dict[str, str]]:
    """Return the events of one rotation."""
    version = str(uuid4())
    return [{"SecretId": arn, "ClientRequestToken": version, "Step": step} for step in STEPS]


def rotate_all(arn: str) -> None:
    for event in events(arn):
        rotate(event)


# ---------------------------------------------------------------- AuthSecret


@pytest.fixture
def auth_secret(store: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The secret as a deploy creates it."""
    arn = create(store, "auth", "a" * 64)
    monkeypatch.setenv("PLAZA_AUTH_SECRET_ID", arn)
    forget()
    return arn


def test_a_new_key_is_followed_by_the_key_before(store: Any, auth_secret: str) -> None:
    rotate_all(auth_secret)
    first = read(store, auth_secret)
    assert first["previous"] == "a" * 64
    rotate_all(auth_secret)
    second = read(store, auth_secret)
    assert second["previous"] == first["current"]
    assert len({second["current"], *first.values()}) == 3
    assert all(len(key) == 64 for key in second.values())


@pytest.mark.parametrize("step", range(4))
def test_each_step_may_be_repeated(store: Any, auth_secret: str, step: int) -> None:
    planned = events(auth_secret)
    for event in planned[: step + 1]:
        rotate(event)
    pending = read(store, auth_secret, "AWSCURRENT" if step == 3 else "AWSPENDING")
    for event in planned[step:]:
        rotate(event)
    assert read(store, auth_secret) == pending


def test_until_the_last_step_the_current_key_stays(store: Any, auth_secret: str) -> None:
    for event in events(auth_secret)[:3]:
        rotate(event)
    assert secrets.read_keys(auth_secret) == ["a" * 64]


def test_no_step_and_no_secret_of_others_is_accepted(store: Any, auth_secret: str) -> None:
    with pytest.raises(ValueError, match="no step"):
        rotate(events(auth_secret)[0] | {"Step": "dropSecret"})
    with pytest.raises(KeyError):
        rotate(events(create(store, "other", "{}"))[0])


# ---------------------------------------------------------------- logins of MySQL


@pytest.fixture
def app_secret(store: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The users of a deployment; this process is RotateSecret, and logs in as the administrator."""
    arns = {}
    for user in PRIVILEGES:
        login = {"username": f"rotated_{user.lower()}", "password": "one"}
        arns[user] = create(store, user, json.dumps(login))
        monkeypatch.setenv(f"PLAZA_MYSQL_{user}_SECRET_ID", arns[user])
    create_users()
    yield arns["APP"]
    for user in PRIVILEGES:
        for suffix in ("", "_2"):
            mysql.write("DROP USER IF EXISTS %s@'%%'", (f"rotated_{user.lower()}{suffix}",))


@pytest.fixture
def as_app(monkeypatch: pytest.MonkeyPatch, app_secret: str) -> Iterator[Callable[[], None]]:
    """``as_app()``: from here on this process is a function that has the app's secret."""
    administrator = settings().mysql

    def become() -> None:
        url = f"mysql://{administrator.host}:{administrator.port}/{administrator.database}"
        monkeypatch.setenv("PLAZA_MYSQL_URL", url)
        monkeypatch.setenv("PLAZA_MYSQL_SECRET_ID", app_secret)
        forget()

    with monkeypatch.context() as patch:
        monkeypatch = patch
        yield become
    forget()


def current_user() -> str:
    return str(mysql.fetch_all("SELECT CURRENT_USER()")[0][0]).partition("@")[0]


def test_two_names_take_turns_with_the_same_privileges(
    store: Any, app_secret: str, as_app: Callable[[], None]
) -> None:
    rotate_all(app_secret)
    assert read(store, app_secret)["username"] == "rotated_app_2"
    rotate_all(app_secret)
    assert read(store, app_secret)["username"] == "rotated_app"
    rotate_all(app_secret)
    as_app()
    assert current_user() == "rotated_app_2"
    mysql.write("INSERT INTO user (id, nickname) VALUES (7, 'ada')")
    with pytest.raises(Exception, match="denied"):
        mysql.write("ALTER TABLE user ADD a INT")


def test_a_process_that_read_the_login_before_goes_on_with_it(
    store: Any, app_secret: str, as_app: Callable[[], None]
) -> None:
    """Given a rotation after the process read its secret: it opens new connections with it."""
    before = secrets.read_login(app_secret)
    rotate_all(app_secret)
    as_app()
    store_before = json.dumps(before._asdict())
    secrets._cache.put(app_secret, secrets._Entry(store_before, 0))
    assert current_user() == "rotated_app"


def test_a_process_that_read_the_login_two_rotations_before_reads_it_again(
    store: Any, app_secret: str, as_app: Callable[[], None]
) -> None:
    before = secrets.read_login(app_secret)
    rotate_all(app_secret)
    rotate_all(app_secret)
    as_app()
    secrets._cache.put(app_secret, secrets._Entry(json.dumps(before._asdict()), 0))
    assert current_user() == "rotated_app"
    assert secrets.read_login(app_secret).password == read(store, app_secret)["password"]


def test_a_login_that_mysql_refuses_does_not_become_current(
    store: Any, app_secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a server that does not take the new password, the rotation fails at its second step."""
    first, second, *_ = events(app_secret)
    rotate(first)
    write = mysql.write
    monkeypatch.setattr(mysql, "write", lambda *args: write("DO 0") if "USER" in args[0] else None)
    with pytest.raises(MysqlDown):
        rotate(second)
    assert read(store, app_secret)["username"] == "rotated_app"


def test_a_deploy_after_a_rotation_keeps_the_rotated_login(
    store: Any, app_secret: str, as_app: Callable[[], None]
) -> None:
    rotate_all(app_secret)
    forget()
    assert create_users()[0] == "rotated_app_2"
    as_app()
    assert current_user() == "rotated_app_2"


# ---------------------------------------------------------------- the password of Redis


class ElastiCache:
    """The users of ElastiCache, on a real Redis: a user has at most two passwords."""

    def __init__(self, server: Server) -> None:
        self._client: Any = redis_py.Redis.from_url(server.url)

    def describe_users(self, **_: object) -> dict[str, Any]:
        return {"Users": [{"Status": "active"}]}

    def modify_user(self, *, UserId: str, Passwords: list[str]) -> None:  # noqa: N803 - of AWS
        assert 1 <= len(Passwords) <= 2
        assert all(16 <= len(password) <= 128 for password in Passwords)
        rules = [*read_redis_access().split(), *(f">{password}" for password in Passwords)]
        self._client.execute_command("ACL", "SETUSER", UserId, "reset", *rules)


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with run_server(prepare_redis(tmp_path_factory.mktemp("rotated") / "redis")) as server:
        yield server


@pytest.fixture
def redis_secret(store: Any, own_redis: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """The login of this process at a Redis of its own."""
    login = {"username": "plaza", "password": "o" * 64}
    arn = create(store, "redis", json.dumps(login))
    ElastiCache(own_redis).modify_user(UserId="plaza", Passwords=[login["password"]])
    monkeypatch.setenv("USER_ID", "plaza")
    monkeypatch.setenv("PLAZA_REDIS_URL", own_redis.url)
    monkeypatch.setenv("PLAZA_REDIS_CLUSTER", "0")
    monkeypatch.setenv("PLAZA_REDIS_SECRET_ID", arn)
    forget()
    return arn


@pytest.fixture
def rotate_redis(store: Any, own_redis: Server) -> Callable[[str, int], None]:
    """``rotate_redis(arn, 2)``: take the first two steps, each of them twice."""
    rotate_once = runpy.run_path(str(ROOT / "deploy" / "rotate_redis" / "app.py"))["rotate"]

    def take(arn: str, steps: int = 4) -> None:
        for event in events(arn)[:steps]:
            for _ in range(2):
                rotate_once(event, store, ElastiCache(own_redis))

    return take


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_redis_accepts_the_old_and_the_new_password_at_each_step(
    store: Any, redis_secret: str, rotate_redis: Callable[[str, int], None], steps: int
) -> None:
    """Given a process that read the secret before, and one that starts at this step."""
    assert redis.execute("PING")
    old = secrets.read(redis_secret)
    rotate_redis(redis_secret, steps)
    forget()
    secrets._cache.put(redis_secret, secrets._Entry(old, 0))
    assert redis.execute("PING")
    assert secrets.read(redis_secret) == old, "it was not refused"
    forget()
    assert redis.execute("PING")
    assert (secrets.read(redis_secret) != old) == (steps == 4)


def test_a_process_that_missed_two_rotations_of_redis_reads_the_secret_again(
    store: Any, redis_secret: str, rotate_redis: Callable[[str, int], None]
) -> None:
    old = secrets.read(redis_secret)
    rotate_redis(redis_secret, 4)
    rotate_redis(redis_secret, 4)
    forget()
    secrets._cache.put(redis_secret, secrets._Entry(old, 0))
    assert redis.execute("PING")
    assert secrets.read(redis_secret) != old
