"""Secrets of AWS Secrets Manager, each read once a process."""

from __future__ import annotations

from typing import Any

from plaza.infra.errors import Unavailable
from plaza.infra.process import LocalCache

_cache: LocalCache[str, str] = LocalCache(max_entries=10)


class SecretsDown(Unavailable):
    """Secrets Manager is unreachable or refuses the secret."""


def read(secret_id: str) -> str:
    """Return the text of a secret. One call a process. Raises SecretsDown."""
    return _cache.get_or_load(secret_id, lambda: _fetch(secret_id))


def forget(secret_id: str) -> None:
    """Drop a rotated secret from the cache, so that the next read fetches it."""
    _cache.drop(secret_id)


def _fetch(secret_id: str) -> str:
    import botocore.session  # slow to import, and not every function needs it
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    config = Config(
        connect_timeout=1, read_timeout=3, retries={"mode": "standard", "total_max_attempts": 2}
    )
    try:
        client: Any = botocore.session.get_session().create_client("secretsmanager", config=config)
        return str(client.get_secret_value(SecretId=secret_id)["SecretString"])
    except (BotoCoreError, ClientError) as error:
        raise SecretsDown("Secrets Manager is unavailable") from error
