"""Connections to Redis: a login from Secrets Manager, and TLS with one context per process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redis import Connection as _Connection
from redis.exceptions import AuthenticationError
from redis.exceptions import ConnectionError as RedisConnectionError

from plaza.infra.aws import secrets, tls
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.runtime.settings import settings

if TYPE_CHECKING:
    from ssl import SSLSocket


class LoginConnection(_Connection):
    """A connection that logs in with the secret ``redis_secret_id``, if there is one. A refused
    login reads the secret again, because it may be rotated."""

    def connect_check_health(self, *args: Any, **options: Any) -> None:
        """Connect and log in, if that is not done."""
        secret_id = settings().redis_secret_id
        if secret_id is None or self.is_connected:
            super().connect_check_health(*args, **options)
            return
        try:
            self._log_in(secret_id, *args, **options)
        except AuthenticationError:
            if not secrets.refresh(secret_id):
                raise
            self._log_in(secret_id, *args, **options)

    def _log_in(self, secret_id: str, *args: Any, **options: Any) -> None:
        try:
            self.username, self.password = secrets.read_login(secret_id)
        except SecretsDown as error:
            raise RedisConnectionError(f"Error connecting to Redis: {error}") from error
        super().connect_check_health(*args, **options)


class TlsConnection(LoginConnection):
    """A connection over TLS that verifies the certificate and the host name.

    redis-py's own class creates a context for each connection.
    """

    def _connect(self) -> SSLSocket:
        connected = super()._connect()  # type: ignore[no-untyped-call]
        try:
            context = tls.verifying_context(settings().redis_ca)
            return context.wrap_socket(connected, server_hostname=self.host)
        except BaseException:
            connected.close()
            raise


def connection_options(url: str) -> tuple[str, dict[str, Any]]:
    """Return ``url`` without TLS, and the options of redis-py that make it use these classes."""
    if url.startswith("rediss://"):
        return "redis" + url.removeprefix("rediss"), {"connection_class": TlsConnection}
    return url, {"connection_class": LoginConnection}
