"""The settings of a deployment, read once from the environment.

The addresses of Redis and MySQL have no default, so that a bad deploy fails at cold start. A
context declares its own settings, which no other context reads:

    class FeedSettings(NamedTuple):
        fan_out_limit: int = 10_000  # PLAZA_FAN_OUT_LIMIT, a whole number above 0

    feed_settings = declare(FeedSettings)
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from plaza.infra.runtime.process import on_reset

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")

_NAME = re.compile(r"[a-z][a-z0-9_]{0,14}")
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
    """What infra reads, or several contexts. ``queues`` maps the name of a queue (``reactions``) to
    its URL.

    ``redis_secret_id`` and ``mysql_secret_id`` are secrets ``{"username", "password"}``;
    ``redis_ca`` and ``mysql_ca`` are files of CA certificates, None for the system's.

    ``redis_reader_url`` is the address of replicas, in a cluster of any nodes; None: all reads
    go to masters.

    Only functions that store have ``mysql_packets``: packets of several statements. Only functions
    that sign something have ``auth_secret_id``, only those that read or write
    archives ``archive_bucket``. ``origin_secret_id`` is the secret that the edge sends. Both
    secrets are ``{"current", "previous"}``. ``allowed_origins``: of web clients, in lower case
    (``*``: all); none where API Gateway answers preflights. ``log_sample_rate``: share of the
    successful requests that are logged, unless a switch lowers it. ``currency``: of all prices, as
    three letters of ISO 4217.
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
    mysql_packets: bool
    queues: Mapping[str, str]
    idle_ttl_s: int
    anonymous_per_s: float
    anonymous_burst: int
    log_sample_rate: float
    resend_after_s: int
    announce_delay_s: int
    auth_secret_id: str | None
    archive_bucket: str | None
    origin_secret_id: str | None
    requires_edge: bool
    allowed_origins: frozenset[str]
    currency: str

    def require_auth_secret_id(self) -> str:
        """Return ``auth_secret_id``. Raises BadSettings without one."""
        if self.auth_secret_id is None:
            raise BadSettings("PLAZA_AUTH_SECRET_ID is not set")
        return self.auth_secret_id


def read_settings(env: Mapping[str, str]) -> Settings:
    """Return the settings in ``env`` (``PLAZA_*``). Raises BadSettings."""
    return Settings(
        environment=require(env, "PLAZA_ENVIRONMENT"),
        redis_url=require(env, "PLAZA_REDIS_URL"),
        redis_secret_id=env.get("PLAZA_REDIS_SECRET_ID") or None,
        redis_ca=env.get("PLAZA_REDIS_CA") or None,
        redis_cluster=env.get("PLAZA_REDIS_CLUSTER", "0") == "1",
        redis_reader_url=env.get("PLAZA_REDIS_READER_URL") or None,
        redis_timeout_s=_number(env, "PLAZA_REDIS_TIMEOUT_S", 0.5),
        mysql=_mysql_address(env),
        mysql_secret_id=env.get("PLAZA_MYSQL_SECRET_ID") or None,
        mysql_ca=env.get("PLAZA_MYSQL_CA") or None,
        mysql_connect_timeout_s=read_whole(env, "PLAZA_MYSQL_CONNECT_TIMEOUT_S", 1),
        mysql_statement_timeout_s=read_whole(env, "PLAZA_MYSQL_STATEMENT_TIMEOUT_S", 10),
        mysql_idle_timeout_s=read_whole(env, "PLAZA_MYSQL_IDLE_TIMEOUT_S", 20),
        mysql_packets=env.get("PLAZA_MYSQL_PACKETS", "0") == "1",
        queues=_queues(env),
        idle_ttl_s=read_whole(env, "PLAZA_IDLE_TTL_S", 10 * 86_400),
        anonymous_per_s=_number(env, "PLAZA_ANONYMOUS_PER_S", 50),
        anonymous_burst=read_whole(env, "PLAZA_ANONYMOUS_BURST", 500),
        log_sample_rate=_number(env, "PLAZA_LOG_SAMPLE_RATE", 1.0),
        resend_after_s=read_whole(env, "PLAZA_RESEND_AFTER_S", 30),
        announce_delay_s=read_whole(env, "PLAZA_ANNOUNCE_DELAY_S", 15),
        auth_secret_id=env.get("PLAZA_AUTH_SECRET_ID") or None,
        archive_bucket=env.get("PLAZA_ARCHIVE_BUCKET") or None,
        origin_secret_id=env.get("PLAZA_ORIGIN_SECRET_ID") or None,
        requires_edge=env.get("PLAZA_GUARD_ORIGIN") == "require",
        allowed_origins=frozenset(map(str.lower, read_names(env, "PLAZA_ALLOWED_ORIGINS"))),
        currency=_currency(env),
    )


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings of this process. Raises BadSettings on the first call."""
    return read_settings(os.environ)


on_reset(settings.cache_clear)


def declare(kind: type[T], **readers: Callable[[Mapping[str, str]], Any]) -> _lru_cache_wrapper[T]:
    """Return a function that returns the settings of a context, read once in each process.

    ``kind`` is a NamedTuple. A field with a default is a number above 0, in ``PLAZA_<FIELD>``, and
    whole if its default is; ``readers`` read the others. The function raises BadSettings.
    """

    @lru_cache(maxsize=1)
    def read() -> T:
        numbers = {
            name: (read_whole if isinstance(default, int) else _number)(
                os.environ, f"PLAZA_{name.upper()}", default
            )
            for name, default in vars(kind)["_field_defaults"].items()
        }
        return kind(**numbers, **{name: reader(os.environ) for name, reader in readers.items()})

    on_reset(read.cache_clear)
    return read


def require(env: Mapping[str, str], name: str, choices: tuple[str, ...] = ()) -> str:
    """Return a setting. Raises BadSettings if it is missing or not one of ``choices``."""
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


def read_whole(env: Mapping[str, str], name: str, default: int) -> int:
    """Return a whole number above 0. Raises BadSettings."""
    value = _number(env, name, default)
    if value != int(value):
        raise BadSettings(f"{name} is {value:g}, not a whole number")
    return int(value)


def read_rate(env: Mapping[str, str], name: str) -> float | None:
    """Return a number above 0, None for 0 or a setting that is missing. Raises BadSettings."""
    return None if env.get(name, "0") in ("", "0") else _number(env, name, 0)


def _currency(env: Mapping[str, str]) -> str:
    code = env.get("PLAZA_CURRENCY") or "EUR"
    if not (code.isascii() and code.isalpha() and code.isupper() and len(code) == 3):
        raise BadSettings(f"PLAZA_CURRENCY is {code!r}, not three letters of ISO 4217")
    return code


def _queues(env: Mapping[str, str]) -> dict[str, str]:
    """Read the URLs of PLAZA_QUEUES, which differ in their ends, by the URL of the first one.

    One by one they would not fit into the 4 KB that a function's environment may have.
    """
    names = [name for name in env.get("PLAZA_QUEUES", "").split(",") if name]
    if not names:
        return {}
    first_url = require(env, "PLAZA_QUEUES_URL")
    if not first_url.endswith(names[0]):
        raise BadSettings(f"PLAZA_QUEUES_URL does not end with {names[0]}")
    base_url = first_url.removesuffix(names[0])
    return {name: base_url + name for name in names}


def parse_objects(
    parameter: str, text: str, fields: Collection[str], *, max_chars: int, max_names: int
) -> dict[str, dict[str, Any]]:
    """Return name -> fields of a parameter such as ``{"bookmark": {"targets": ["post"]}}``. Raises
    BadSettings, with the place, for what is not that, and for other fields or names than
    lowercase letters, digits and underscores."""
    if len(text) > max_chars:
        raise BadSettings(f"{parameter} has {len(text)} characters, more than {max_chars}")
    try:
        decoded = json.loads(text or "{}", object_pairs_hook=_require_unique)
    except ValueError as error:
        raise BadSettings(f"{parameter} is no JSON: {error}") from None
    if not isinstance(decoded, dict) or len(decoded) > max_names:
        raise BadSettings(f"{parameter} is not an object of up to {max_names} names")
    for name, item in decoded.items():
        at = f"{parameter}.{name}"
        if not _NAME.fullmatch(name):
            raise BadSettings(f"{at}: a name is 1 to 15 of a-z, 0-9, _, and begins with a letter")
        if not isinstance(item, dict):
            raise BadSettings(f"{at} is not an object")
        if unknown := item.keys() - set(fields):
            raise BadSettings(f"{at}.{min(unknown)}: no such field")
    return decoded


def _require_unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name is there twice")
    return dict(pairs)


def read_names(env: Mapping[str, str], name: str) -> frozenset[str]:
    """Read ``US, DE``; an empty set for a setting that is missing."""
    return frozenset(part for word in env.get(name, "").split(",") if (part := word.strip()))


def _mysql_address(env: Mapping[str, str]) -> MysqlAddress:
    url = urlsplit(require(env, "PLAZA_MYSQL_URL"))
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
