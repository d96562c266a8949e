"""Settings of a deployment: required, optional and invalid ones."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from plaza.infra.runtime.settings import BadSettings, MysqlAddress, read_settings

GOOD = {
    "PLAZA_ENVIRONMENT": "staging",
    "PLAZA_REDIS_URL": "rediss://cache:6380",
    "PLAZA_MYSQL_URL": "mysql://db.internal:3307/plaza",
    "PLAZA_MYSQL_SECRET_ID": "arn:secret",
}
WHOLE_NUMBERS = (
    "PLAZA_MYSQL_CONNECT_TIMEOUT_S",
    "PLAZA_MYSQL_STATEMENT_TIMEOUT_S",
    "PLAZA_MYSQL_IDLE_TIMEOUT_S",
    "PLAZA_IDLE_TTL_S",
    "PLAZA_RESEND_AFTER_S",
    "PLAZA_ANNOUNCE_DELAY_S",
)


def set_only(patch: pytest.MonkeyPatch, values: Mapping[str, str]) -> None:
    """Set these settings, and remove the settings of integration tests of the same process."""
    for name in [name for name in os.environ if name.startswith("PLAZA_")]:
        patch.delenv(name)
    for name, value in values.items():
        patch.setenv(name, value)


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("value", [None, ""], ids=["missing", "empty"])
def test_a_missing_required_setting_is_named(name: str, value: str | None) -> None:
    env = {k: v for k, v in GOOD.items() if k != name}
    if value is not None:
        env[name] = value
    with pytest.raises(BadSettings, match=f"{name} is not set"):
        read_settings(env)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLAZA_MYSQL_URL", "postgres://db/plaza"),
        ("PLAZA_MYSQL_URL", "mysql://db"),
        ("PLAZA_MYSQL_URL", "mysql:///plaza"),
        ("PLAZA_MYSQL_URL", "db/plaza"),
        ("PLAZA_MYSQL_URL", "mysql://db/plaza?ssl-mode=REQUIRED"),
        ("PLAZA_REDIS_TIMEOUT_S", "soon"),
        ("PLAZA_REDIS_TIMEOUT_S", "0"),
        ("PLAZA_REDIS_TIMEOUT_S", "-1"),
        *((name, value) for name in WHOLE_NUMBERS for value in ("many", "0", "-5", "1.5")),
    ],
)
def test_an_invalid_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(BadSettings, match=name):
        read_settings(GOOD | {name: value})


def test_optional_settings_have_defaults() -> None:
    result = read_settings(GOOD)
    assert result.redis_timeout_s == 0.5
    assert result.mysql_connect_timeout_s == 1
    assert result.idle_ttl_s == 864_000
    assert result.redis_cluster is False
    assert result.queues == {}


@pytest.mark.parametrize(
    ("changes", "verifies"),
    [
        ({}, False),
        ({"PLAZA_MYSQL_CA": ""}, False),
        ({"PLAZA_MYSQL_CA": "/opt/ca.pem"}, True),
        ({"PLAZA_MYSQL_URL": "mysql://db/plaza?ssl-mode=VERIFY_IDENTITY"}, True),
    ],
)
def test_mysql_is_verified_with_a_ca_or_by_the_url(changes: dict[str, str], verifies: bool) -> None:
    result = read_settings(GOOD | changes)
    assert result.mysql.verifies_tls is verifies
    assert result.mysql.database == "plaza"
    assert result.mysql_ca == (changes.get("PLAZA_MYSQL_CA") or None)


def test_mysql_has_an_address_and_a_secret() -> None:
    assert read_settings(GOOD).mysql == MysqlAddress("db.internal", 3307, "plaza", None, None)


def test_a_user_and_password_in_the_url_replace_the_secret() -> None:
    env = {k: v for k, v in GOOD.items() if k != "PLAZA_MYSQL_SECRET_ID"}
    env["PLAZA_MYSQL_URL"] = "mysql://a%40b:p%2Fw@127.0.0.1/plaza"
    result = read_settings(env)
    assert result.mysql == MysqlAddress("127.0.0.1", 3306, "plaza", "a@b", "p/w")
    assert result.mysql_secret_id is None


def test_a_function_may_have_no_queues() -> None:
    assert read_settings(GOOD).queues == {}


@pytest.mark.parametrize(("value", "is_cluster"), [("1", True), ("0", False)])
def test_redis_is_a_cluster_if_the_setting_is_1(value: str, is_cluster: bool) -> None:
    assert read_settings(GOOD | {"PLAZA_REDIS_CLUSTER": value}).redis_cluster is is_cluster


def test_the_repr_of_settings_has_no_password() -> None:
    env = {
        "PLAZA_ENVIRONMENT": "staging",
        "PLAZA_REDIS_URL": "rediss://:a-secret@cache:6380",
        "PLAZA_MYSQL_URL": "mysql://plaza:a-secret@db.internal/plaza",
    }
    assert "a-secret" not in repr(read_settings(env))


def test_all_queues_are_found_by_the_url_of_the_first_one() -> None:
    base_url = "https://sqs.eu-central-1.amazonaws.com/1/plaza-reactions"
    env = {"PLAZA_QUEUES_URL": f"{base_url}-reactions", "PLAZA_QUEUES": "reactions,orders_dlq"}
    assert read_settings(GOOD | env).queues == {
        "reactions": f"{base_url}-reactions",
        "orders_dlq": f"{base_url}-orders_dlq",
    }


@pytest.mark.parametrize("url", ["", "https://sqs/1/plaza-orders"])
def test_the_url_of_another_queue_is_refused(url: str) -> None:
    with pytest.raises(BadSettings, match="PLAZA_QUEUES_URL"):
        read_settings(GOOD | {"PLAZA_QUEUES_URL": url, "PLAZA_QUEUES": "reactions,orders"})
