"""Secrets of AWS Secrets Manager, each read once a process, and again when one is refused.

The first request of each process reads them, so ``infra.aws.aws_json`` does; rotation uses
botocore.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from plaza.infra.aws import aws_json
from plaza.infra.aws.aws_json import AwsError, AwsJsonClient
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.process import LocalCache

MIN_REFRESH_S = 5


class SecretsDown(Unavailable):
    """Secrets Manager is unreachable or refuses the secret."""


class Login(NamedTuple):
    """A user name and a password."""

    username: str
    password: str


class _Entry(NamedTuple):
    text: str
    fetched_s: float


_cache: LocalCache[str, _Entry] = LocalCache(max_entries=10)


def read(secret_id: str) -> str:
    """Return the text of a secret. One call a process. Raises SecretsDown."""
    return _cache.get_or_load(
        secret_id, lambda: _Entry(_fetch(secret_id), clock.monotonic_s())
    ).text


def read_recent(secret_id: str, max_age_s: float) -> str:
    """Return the text of a secret as it was at most ``max_age_s`` ago; an older one while Secrets
    Manager is unavailable, asked again in ``MIN_REFRESH_S``. Raises SecretsDown without any."""
    entry = _cache.get(secret_id)
    now_s = clock.monotonic_s()
    if entry is None or now_s - entry.fetched_s < max_age_s:
        return read(secret_id)
    try:
        entry = _Entry(_fetch(secret_id), now_s)
    except SecretsDown:
        entry = entry._replace(fetched_s=now_s - max_age_s + MIN_REFRESH_S)
    _cache.put(secret_id, entry)
    return entry.text


def replace(secret_id: str, text: str) -> None:
    """Store another text of a secret. One call. Raises SecretsDown."""
    with outages():
        connect().put_secret_value(SecretId=secret_id, SecretString=text)
    _cache.drop(secret_id)


def read_login(secret_id: str) -> Login:
    """Return the login of a secret ``{"username", "password"}``. Raises SecretsDown."""
    return parse_login(read(secret_id))


def parse_login(text: str) -> Login:
    """Return the login in the text of such a secret."""
    secret = json.loads(text)
    return Login(secret["username"], secret["password"])


def read_keys(secret_id: str) -> list[str]:
    """Return the keys of a secret ``{"current", "previous"}``, the current one first; any other
    text is one key. One call a process. Raises SecretsDown."""
    return list_keys(read(secret_id))


def list_keys(text: str) -> list[str]:
    """Return the keys of the text of such a secret."""
    try:
        known = json.loads(text) if text.startswith("{") else {"current": text}
    except ValueError:  # a random key
        known = {"current": text}
    return [known[name] for name in ("current", "previous") if known.get(name)]


def find_key(
    secret_id: str, is_right: Callable[[str], bool], min_age_s: float | None = None
) -> str | None:
    """Return the key for which ``is_right`` is true, None if there is none. If no cached key is
    right and the secret is older than ``min_age_s`` (by default ``MIN_REFRESH_S``), fetches it once
    more: it may be rotated. Raises SecretsDown; then the cached keys stay."""
    key = next(filter(is_right, read_keys(secret_id)), None)
    entry = _cache.get(secret_id)
    now_s, age_s = clock.monotonic_s(), MIN_REFRESH_S if min_age_s is None else min_age_s
    if key is not None or (entry and now_s - entry.fetched_s < age_s):
        return key
    if entry:
        _cache.put(secret_id, entry._replace(fetched_s=now_s))
    _cache.put(secret_id, _Entry(_fetch(secret_id), now_s))
    return next(filter(is_right, read_keys(secret_id)), None)


def refresh(secret_id: str) -> bool:
    """Let the next read fetch a secret again that was refused, because it may be rotated.
    Return False, and do nothing, if it was fetched less than ``MIN_REFRESH_S`` ago."""
    entry = _cache.get(secret_id)
    if entry and clock.monotonic_s() - entry.fetched_s < MIN_REFRESH_S:
        return False
    _cache.drop(secret_id)
    return True


def connect() -> Any:
    """Return botocore's client of Secrets Manager."""
    import botocore.session  # slow to import
    from botocore.config import Config

    config = Config(
        connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2}
    )
    return botocore.session.get_session().create_client("secretsmanager", config=config)


@contextmanager
def outages() -> Iterator[None]:
    """Raise SecretsDown for errors of Secrets Manager in the block."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise SecretsDown("Secrets Manager is unavailable") from error


def _fetch(secret_id: str) -> str:
    parameters = {"SecretId": secret_id, "VersionStage": "AWSCURRENT"}
    client = aws_json.make_client(aws_json.SECRETS_MANAGER)
    if client is None:  # credentials that expire
        with outages():
            return str(connect().get_secret_value(**parameters)["SecretString"])
    with closing(client):
        try:
            return _get_value(client, parameters)
        except AwsError as error:
            raise SecretsDown("Secrets Manager is unavailable") from error


def _get_value(client: AwsJsonClient, parameters: dict[str, str]) -> str:
    """Return the text of a secret. Repeats a call that failed for a passing cause."""
    try:
        reply = client.post("GetSecretValue", parameters)
    except AwsError as error:
        if not error.is_passing:
            raise
        reply = client.post("GetSecretValue", parameters)
    return str(reply["SecretString"])
