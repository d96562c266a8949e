"""Send text messages by SNS, or locally into Redis, where `python -m local sms` reads them.

auth{<shard>}:echo:<SHA-256 of the phone, hex>  string  the text
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, Protocol

from plaza.infra.redis import redis
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.process import on_reset
from plaza.infra.runtime.settings import BadSettings
from plaza.people.auth.codes import CODE_TTL_S
from plaza.people.auth.settings import auth_settings


class SmsDown(Unavailable):
    """The text may not have been sent. It counts against the limits, as it may have been."""


class SmsSender(Protocol):
    def send(self, phone: str, text: str) -> None:
        """Send ``text`` to ``phone`` (E.164). Raises SmsDown, RedisDown."""


class SnsSender:
    """Sends by Amazon SNS, once and with short timeouts: a retry may send a second text."""

    def __init__(self) -> None:
        import botocore.session  # slow to import, and only needed here
        from botocore.config import Config

        config = Config(connect_timeout=1, read_timeout=4, retries={"total_max_attempts": 1})
        self._client: Any = botocore.session.get_session().create_client("sns", config=config)

    def send(self, phone: str, text: str) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            self._client.publish(
                PhoneNumber=phone,
                Message=text,
                MessageAttributes={
                    "AWS.SNS.SMS.SMSType": {"DataType": "String", "StringValue": "Transactional"}
                },
            )
        except (BotoCoreError, ClientError) as error:
            # The message of the error may contain the phone, its code does not.
            code = getattr(error, "response", {}).get("Error", {}).get("Code")
            record("sms_failed", {"sms_failed": 1}, error=type(error).__name__, code=code)
            raise SmsDown(
                "The code could not be sent; retry after 60 s.", retry_after_s=60
            ) from None


class EchoSender:
    """Stores the text in Redis, unencrypted, for as long as its code is valid."""

    def send(self, phone: str, text: str) -> None:
        redis.execute("SET", _echo_key(phone), text, "EX", CODE_TTL_S)


@lru_cache(maxsize=1)
def sender() -> SmsSender:
    """Return the sender of this deployment. Raises BadSettings if none is set."""
    match auth_settings().sms_sender:
        case "sns":
            return SnsSender()
        case "echo":
            return EchoSender()
    raise BadSettings("PLAZA_SMS_SENDER is not set")


on_reset(sender.cache_clear)


def read_echo(phone: str) -> str | None:
    """Return the newest text to ``phone``, or None. Raises RedisDown."""
    text = redis.execute("GET", _echo_key(phone))
    return None if text is None else str(text)


def _echo_key(phone: str) -> str:
    name = f"echo:{hashlib.sha256(phone.encode()).hexdigest()}"
    return f"auth{{{shard_of(name)}}}:{name}"
