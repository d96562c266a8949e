"""The settings of a deployment, read once from the environment.

The addresses of Redis and MySQL have no default, so that a bad deploy fails at cold start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from plaza.infra.runtime.process import on_reset

SMS_NUMBER_TYPES = (
    "mobile",
    "fixed_line_or_mobile",
    "fixed_line",
    "voip",
    "personal_number",
)
"""Types of phone numbers that may get text messages; by default the first two.

Types whose owner earns money with each message (premium rate, shared cost) are never allowed.
"""

_COUNTRY = re.compile(r"[A-Z]{2}")
_NUMBER_BY_NAME = re.compile(r"(?:^|,)([a-z]+)=([0-9]{1,9})(?=,|$)")
_MAX_NUMBER_BY_NAME = 1_000_000
_VERIFIED = "ssl-mode=VERIFY_IDENTITY"  # as the clients of MySQL name it


class BadSettings(Exception):
    """A setting is missing or invalid; the text names it."""


@dataclass(frozen=True, slots=True)
class MysqlAddress:
    """The address and user of MySQL. Without a user, the secret ``mysql_secret_id`` has it.
    With ``verifies_tls``, connections use TLS and verify the server's certificate and name."""

    host: str
    port: int
    database: str
    user: str | None
    password: str | None = field(repr=False)
    verifies_tls: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, typed. ``queues`` maps the name of a queue (``reactions``) to its URL.

    ``redis_secret_id`` and ``mysql_secret_id`` are secrets ``{"username", "password"}``;
    ``redis_ca`` and ``mysql_ca`` are files of CA certificates, None for the system's.

    ``redis_reader_url`` is the address of replicas, in a cluster of any nodes; None: all reads
    go to masters.

    Only the sign-in function has the settings of text messages; it and the functions with signed
    cursors and ids of visitors have ``auth_secret_id``; only those of the reaction log and of
    orders have ``archive_bucket``. ``origin_secret_id`` is the secret that the edge sends. Both
    secrets are ``{"current", "previous"}``. ``review_weights`` and ``review_halves`` are of the
    components of a review's score (docs/ranking.md). ``allowed_origins``: of web clients,
    in lower case (``*``: all); none where API Gateway answers preflights.
    ``sms_countries`` are ISO 3166 codes (``*``: all), ``sms_number_types`` are types of the library
    phonenumbers in lower case.
    """

    environment: str
    redis_url: str = field(repr=False)
    redis_secret_id: str | None
    redis_ca: str | None
    redis_cluster: bool
    redis_reader_url: str | None = field(repr=False)
    redis_timeout_s: float
    mysql: MysqlAddress
    mysql_secret_id: str | None
    mysql_ca: str | None
    mysql_connect_timeout_s: int
    mysql_statement_timeout_s: int
    mysql_idle_timeout_s: int
    queues: Mapping[str, str]
    recent_cap: int
    outbox_limit: int
    fan_out_limit: int
    idle_ttl_s: int
    session_ttl_s: int
    session_max_age_s: int
    reads_per_s: float
    reads_burst: int
    writes_per_s: float
    writes_burst: int
    anonymous_per_s: float
    anonymous_burst: int
    orders_per_s: int
    max_pending_orders: int
    resend_after_s: int
    resend_orders_after_s: int
    decide_orders_after_s: int
    announce_delay_s: int
    review_weights: Mapping[str, int]
    review_halves: Mapping[str, int]
    hot_half_life_h: int
    auth_secret_id: str | None
    sms_sender: str | None
    sms_countries: frozenset[str]
    sms_number_types: frozenset[str]
    max_codes_per_hour: int
    max_codes_per_network_per_hour: int
    archive_bucket: str | None
    origin_secret_id: str | None
    requires_edge: bool
    allowed_origins: frozenset[str]

    def require_auth_secret_id(self) -> str:
        """Return ``auth_secret_id``. Raises BadSettings without one."""
        if self.auth_secret_id is None:
            raise BadSettings("PLAZA_AUTH_SECRET_ID is not set")
        return self.auth_secret_id


def read_settings(env: Mapping[str, str]) -> Settings:
    """Return the settings in ``env`` (``PLAZA_*``). Raises BadSettings."""
    return Settings(
        environment=_required(env, "PLAZA_ENVIRONMENT"),
        redis_url=_required(env, "PLAZA_REDIS_URL"),
        redis_secret_id=env.get("PLAZA_REDIS_SECRET_ID") or None,
        redis_ca=env.get("PLAZA_REDIS_CA") or None,
        redis_cluster=env.get("PLAZA_REDIS_CLUSTER", "0") == "1",
        redis_reader_url=env.get("PLAZA_REDIS_READER_URL") or None,
        redis_timeout_s=_number(env, "PLAZA_REDIS_TIMEOUT_S", 0.5),
        mysql=_mysql_address(env),
        mysql_secret_id=env.get("PLAZA_MYSQL_SECRET_ID") or None,
        mysql_ca=env.get("PLAZA_MYSQL_CA") or None,
        mysql_connect_timeout_s=_whole(env, "PLAZA_MYSQL_CONNECT_TIMEOUT_S", 1),
        mysql_statement_timeout_s=_whole(env, "PLAZA_MYSQL_STATEMENT_TIMEOUT_S", 10),
        mysql_idle_timeout_s=_whole(env, "PLAZA_MYSQL_IDLE_TIMEOUT_S", 20),
        queues=_queues(env),
        recent_cap=_whole(env, "PLAZA_RECENT_CAP", 1000),
        outbox_limit=_whole(env, "PLAZA_OUTBOX_LIMIT", 1_000_000),
        fan_out_limit=_whole(env, "PLAZA_FAN_OUT_LIMIT", 10_000),
        idle_ttl_s=_whole(env, "PLAZA_IDLE_TTL_S", 10 * 86_400),
        session_ttl_s=_whole(env, "PLAZA_SESSION_TTL_S", 30 * 86_400),
        session_max_age_s=_whole(env, "PLAZA_SESSION_MAX_AGE_S", 180 * 86_400),
        reads_per_s=_number(env, "PLAZA_READS_PER_S", 20),
        reads_burst=_whole(env, "PLAZA_READS_BURST", 100),
        writes_per_s=_number(env, "PLAZA_WRITES_PER_S", 5),
        writes_burst=_whole(env, "PLAZA_WRITES_BURST", 50),
        anonymous_per_s=_number(env, "PLAZA_ANONYMOUS_PER_S", 50),
        anonymous_burst=_whole(env, "PLAZA_ANONYMOUS_BURST", 500),
        orders_per_s=_whole(env, "PLAZA_ORDERS_PER_S", 2_000),
        max_pending_orders=_whole(env, "PLAZA_MAX_PENDING_ORDERS", 100_000),
        resend_after_s=_whole(env, "PLAZA_RESEND_AFTER_S", 30),
        resend_orders_after_s=_whole(env, "PLAZA_RESEND_ORDERS_AFTER_S", 300),
        decide_orders_after_s=_whole(env, "PLAZA_DECIDE_ORDERS_AFTER_S", 1_800),
        announce_delay_s=_whole(env, "PLAZA_ANNOUNCE_DELAY_S", 15),
        review_weights=_review_weights(env),
        review_halves=_numbers_by_name(
            env, "PLAZA_REVIEW_HALVES", "votes=4,length=200,images=1,age=90,author=50", lowest=1
        ),
        hot_half_life_h=_hot_half_life_h(env),
        auth_secret_id=env.get("PLAZA_AUTH_SECRET_ID") or None,
        sms_sender=_sms_sender(env),
        sms_countries=_sms_countries(env),
        sms_number_types=_sms_number_types(env),
        max_codes_per_hour=_whole(env, "PLAZA_MAX_CODES_PER_HOUR", 1_000),
        max_codes_per_network_per_hour=_whole(env, "PLAZA_MAX_CODES_PER_NETWORK_PER_HOUR", 200),
        archive_bucket=env.get("PLAZA_ARCHIVE_BUCKET") or None,
        origin_secret_id=env.get("PLAZA_ORIGIN_SECRET_ID") or None,
        requires_edge=env.get("PLAZA_GUARD_ORIGIN") == "require",
        allowed_origins=frozenset(map(str.lower, _names(env, "PLAZA_ALLOWED_ORIGINS"))),
    )


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings of this process. Raises BadSettings on the first call."""
    return read_settings(os.environ)


on_reset(settings.cache_clear)


def _required(env: Mapping[str, str], name: str, choices: tuple[str, ...] = ()) -> str:
    value = env.get(name, "")
    if not value:
        raise BadSettings(f"{name} is not set")
    if choices and value not in choices:
        raise BadSettings(f"{name} is {value!r}, not one of {', '.join(choices)}")
    return value


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    raw = env.get(name, "")
    try:
        value = float(raw) if raw else default
    except ValueError:
        raise BadSettings(f"{name} is {raw!r}, not a number") from None
    if value <= 0:
        raise BadSettings(f"{name} is {value:g}, not above 0")
    return value


def _whole(env: Mapping[str, str], name: str, default: int) -> int:
    value = _number(env, name, default)
    if value != int(value):
        raise BadSettings(f"{name} is {value:g}, not a whole number")
    return int(value)


def _numbers_by_name(
    env: Mapping[str, str], name: str, default: str, *, lowest: int
) -> dict[str, int]:
    """Read ``votes=50,age=15``: a whole number for each of the names in ``default``."""
    raw = env.get(name) or default
    numbers = dict(_NUMBER_BY_NAME.findall(raw))
    expected = dict(_NUMBER_BY_NAME.findall(default))
    if numbers.keys() != expected.keys() or raw.count(",") != len(expected) - 1:
        raise BadSettings(f"{name} is {raw!r}, not of the form {default!r}")
    for key, number in numbers.items():
        if not lowest <= int(number) <= _MAX_NUMBER_BY_NAME:
            raise BadSettings(f"{name} has {key}={number}, not {lowest} to {_MAX_NUMBER_BY_NAME}")
    return {key: int(numbers[key]) for key in expected}


def _review_weights(env: Mapping[str, str]) -> dict[str, int]:
    name = "PLAZA_REVIEW_WEIGHTS"
    weights = _numbers_by_name(env, name, "votes=50,length=15,images=10,age=15,author=10", lowest=0)
    if not any(weights.values()):
        raise BadSettings(f"{name} has no weight above 0")
    return weights


def _hot_half_life_h(env: Mapping[str, str]) -> int:
    """Return hours; shorter or longer ones would exceed what a sorted set stores exactly, or the
    hours that are kept."""
    hours = _whole(env, "PLAZA_HOT_HALF_LIFE_H", 12)
    if not 6 <= hours <= 72:
        raise BadSettings(f"PLAZA_HOT_HALF_LIFE_H is {hours}, not 6 to 72")
    return hours


def _queues(env: Mapping[str, str]) -> dict[str, str]:
    """Read the URLs of queues: PLAZA_QUEUE_<NAME>_URL each, or all by the URL of the first one.

    The URLs of PLAZA_QUEUES differ in their ends. One by one they do not fit into the 4 KB that a
    function's environment may have.
    """
    queues = {
        name.removeprefix("PLAZA_QUEUE_").removesuffix("_URL").lower(): url
        for name, url in env.items()
        if name.startswith("PLAZA_QUEUE_") and name.endswith("_URL")
    }
    if names := [name for name in env.get("PLAZA_QUEUES", "").split(",") if name]:
        first_url = _required(env, "PLAZA_QUEUES_URL")
        if not first_url.endswith(names[0]):
            raise BadSettings(f"PLAZA_QUEUES_URL does not end with {names[0]}")
        base_url = first_url.removesuffix(names[0])
        queues |= {name: base_url + name for name in names}
    return queues


def _sms_sender(env: Mapping[str, str]) -> str | None:
    """Return ``sns``, or ``echo``, which puts codes into Redis and is for local use only."""
    if not env.get("PLAZA_SMS_SENDER"):
        return None
    sender = _required(env, "PLAZA_SMS_SENDER", choices=("sns", "echo"))
    if sender == "echo" and env.get("PLAZA_ENVIRONMENT") != "local":
        raise BadSettings("PLAZA_SMS_SENDER is 'echo', which requires PLAZA_ENVIRONMENT=local")
    return sender


def _sms_countries(env: Mapping[str, str]) -> frozenset[str]:
    """Return the countries in ``US,DE`` or ``*``; by default none, and no message is sent."""
    countries = _names(env, "PLAZA_SMS_COUNTRIES")
    for country in countries - {"*"}:
        if not _COUNTRY.fullmatch(country):
            raise BadSettings(f"PLAZA_SMS_COUNTRIES has {country!r}, not an ISO 3166 code")
    return countries


def _sms_number_types(env: Mapping[str, str]) -> frozenset[str]:
    types = _names(env, "PLAZA_SMS_NUMBER_TYPES") or SMS_NUMBER_TYPES[:2]
    if unknown := sorted(set(types) - set(SMS_NUMBER_TYPES)):
        allowed = ", ".join(SMS_NUMBER_TYPES)
        raise BadSettings(f"PLAZA_SMS_NUMBER_TYPES has {unknown[0]!r}, not one of {allowed}")
    return frozenset(types)


def _names(env: Mapping[str, str], name: str) -> frozenset[str]:
    return frozenset(part for word in env.get(name, "").split(",") if (part := word.strip()))


def _mysql_address(env: Mapping[str, str]) -> MysqlAddress:
    url = urlsplit(_required(env, "PLAZA_MYSQL_URL"))
    database = url.path.lstrip("/")
    if url.scheme != "mysql" or not url.hostname or not database:
        raise BadSettings("PLAZA_MYSQL_URL is not of the form mysql://host:port/database")
    if url.query not in ("", _VERIFIED):
        raise BadSettings(f"PLAZA_MYSQL_URL may end with ?{_VERIFIED}, and no other option")
    if not url.username and not env.get("PLAZA_MYSQL_SECRET_ID"):
        raise BadSettings("PLAZA_MYSQL_SECRET_ID is not set and PLAZA_MYSQL_URL names no user")
    return MysqlAddress(
        host=url.hostname,
        port=url.port or 3306,
        database=database,
        user=unquote(url.username) if url.username else None,
        password=unquote(url.password) if url.password else None,
        verifies_tls=bool(url.query or env.get("PLAZA_MYSQL_CA")),
    )
