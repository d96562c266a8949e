"""Rotation of secrets. Secrets Manager asks for four steps, and may repeat each of them.

The new value is stored as AWSPENDING, made valid and tried, and only then becomes AWSCURRENT. What
is current until then stays valid until the next rotation, so a process that read it goes on.
"""

from __future__ import annotations

import json
import secrets as randomness
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from plaza.infra.aws import secrets
from plaza.infra.mysql import database_users
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.settings import settings

_PENDING, _CURRENT = "AWSPENDING", "AWSCURRENT"
_KEY_BYTES = 32


class Rotation(NamedTuple):
    """How a secret is rotated. Both functions may be repeated with the same text."""

    make: Callable[[str], str]
    """Returns the text that follows the current one."""
    make_valid: Callable[[str], None]
    """Makes a new text valid, and raises unless it is. The current one stays valid."""


def rotate(event: Mapping[str, Any], rotation: Rotation | None = None) -> None:
    """Take one step of a rotation, by default of AuthSecret or of a
    login at MySQL. Raises SecretsDown, MysqlDown."""
    secret_id, version, step = event["SecretId"], event["ClientRequestToken"], event["Step"]
    rotation, client = rotation or _rotation_of(secret_id), secrets.connect()
    with secrets.outages():
        match step:
            case "createSecret":
                _store_pending(client, secret_id, version, rotation)
            case "setSecret":
                rotation.make_valid(
                    _read(client, secret_id, VersionId=version, VersionStage=_PENDING)
                )
            case "testSecret":
                pass  # setSecret did
            case "finishSecret":
                _make_current(client, secret_id, version)
                record("secret_rotated", secret=secret_id)
            case _:
                raise ValueError(f"a rotation has no step {step!r}")


def make_keys(current: str) -> str:
    """Return a secret ``{"current", "previous"}`` with a new key, after the current one."""
    new = randomness.token_hex(_KEY_BYTES)
    return json.dumps({"current": new, "previous": secrets.list_keys(current)[0]})


_KEYS = Rotation(make_keys, lambda _: None)


def _rotation_of(secret_id: str) -> Rotation:
    if secret_id == settings().auth_secret_id:
        return _KEYS
    user = database_users.user_of(secret_id)
    return Rotation(database_users.make_login, lambda text: database_users.set_login(user, text))


def _store_pending(client: Any, secret_id: str, version: str, rotation: Rotation) -> None:
    try:
        _read(client, secret_id, VersionId=version, VersionStage=_PENDING)
    except client.exceptions.ResourceNotFoundException:
        client.put_secret_value(
            SecretId=secret_id,
            ClientRequestToken=version,
            SecretString=rotation.make(_read(client, secret_id, VersionStage=_CURRENT)),
            VersionStages=[_PENDING],
        )


def _make_current(client: Any, secret_id: str, version: str) -> None:
    stages = client.describe_secret(SecretId=secret_id)["VersionIdsToStages"]
    current = next(id_ for id_, names in stages.items() if _CURRENT in names)
    if current != version:
        client.update_secret_version_stage(
            SecretId=secret_id,
            VersionStage=_CURRENT,
            MoveToVersionId=version,
            RemoveFromVersionId=current,
        )


def _read(client: Any, secret_id: str, **version: str) -> str:
    return str(client.get_secret_value(SecretId=secret_id, **version)["SecretString"])
