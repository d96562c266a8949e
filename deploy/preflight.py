"""What an account lacks for an environment: quotas, and the way out for text messages."""

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Protocol, TypeVar

from botocore.exceptions import ClientError

from cli.paths import ROOT
from deploy.account import is_denied
from deploy.parts import DeployError

T = TypeVar("T")

SCHEDULES = ROOT / "functions" / "schedule"
REQUESTS_PER_EXECUTION = 10  # a second, of the account's quota of concurrent executions
USUAL_CONCURRENCY = 1000  # of an account; a new one has 10
UNRESERVED = 100  # executions that Lambda keeps out of reservations
DEFAULT_SMS_USD = 1  # a month, until AWS raises it


class Limits(Protocol):
    """What is asked of an account."""

    def read_concurrency(self) -> int: ...
    def read_sms(self) -> tuple[bool, float]: ...


def check_limits(account: Limits, values: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence about each limit that an environment would meet.

    Raises DeployError for one with which the deploy would fail.
    """
    concurrency = yield from _read(account.read_concurrency, "Lambda's quota")
    if concurrency is not None:
        needed = UNRESERVED + len(list(SCHEDULES.glob("*/app.py")))
        if values.get("ReserveConcurrency") == "1" and concurrency < needed:
            raise DeployError(
                f"ReserveConcurrency=1 needs a quota of {needed} concurrent executions; the account"
                f" has {concurrency}"
            )
        if concurrency < USUAL_CONCURRENCY:
            yield (
                f"Lambda: {concurrency} concurrent executions, so at most"
                f" {concurrency * REQUESTS_PER_EXECUTION:,} requests a second of all functions;"
                " ask for more in Service Quotas (L-B99A9384)"
            )
    if values.get("SmsSender") != "sns":
        return
    sms = yield from _read(account.read_sms, "SNS")
    if sms is not None:
        is_sandboxed, usd = sms
        if is_sandboxed:
            yield "SMS: the account is in the sandbox, so codes reach verified phones only"
        if usd <= DEFAULT_SMS_USD:
            yield f"SMS: AWS sends texts for {usd:g} USD a month, then none; ask for a higher limit"


def _read(read: Callable[[], T], name: str) -> Generator[str, None, T | None]:
    """Return what is read; yield that it could not be read, and return None."""
    try:
        return read()
    except ClientError as error:
        if not is_denied(error):
            raise
        yield f"{name} was not checked: {error}"
        return None
