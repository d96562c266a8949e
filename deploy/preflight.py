"""What an account lacks for an environment: quotas, and the way out for text messages."""

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Protocol, TypeVar

from botocore.exceptions import ClientError

from cli.paths import TEMPLATE
from deploy.account import Concurrency, is_denied
from deploy.parts import DeployError

T = TypeVar("T")

RESERVE = "ReserveConcurrency"
REQUESTS_PER_EXECUTION = 10  # a second, of the account's quota of concurrent executions
USUAL_CONCURRENCY = 1000  # of an account; a new one has 10
UNRESERVED = 100  # executions that Lambda keeps out of reservations
DEFAULT_SMS_USD = 1  # a month, until AWS raises it
_UNGUARDED = "a flood of requests takes the executions of consumers and schedules"


class Limits(Protocol):
    """What is asked of an account."""

    def read_concurrency(self) -> Concurrency: ...
    def read_sms(self) -> tuple[bool, float]: ...


def check_limits(account: Limits, values: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence about each limit that an environment would meet.

    Raises DeployError for one with which the deploy would fail.
    """
    concurrency = yield from _read(account.read_concurrency, "Lambda's quota")
    if concurrency is not None and concurrency.quota < USUAL_CONCURRENCY:
        yield (
            f"Lambda: {concurrency.quota} concurrent executions, so at most"
            f" {concurrency.quota * REQUESTS_PER_EXECUTION:,} requests a second of all functions;"
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


def check_firewall(values: Mapping[str, str]) -> str:
    """Return a sentence about an entry that no firewall protects; empty without one. ``values``: of
    the parameters of application and load balancer."""
    guard, has_balancer = values["GuardOrigin"], values["Ingress"] == "load-balancer"
    is_open = values["HttpApi"] == "open"
    if guard == "require":
        return ""
    if guard == "trust":
        entry = "the URL of the HTTP API" if is_open else "the load balancer"
        return f"{entry} passes by the firewall of the edge until GuardOrigin=require"
    if not has_balancer:
        return "no firewall: it comes with the edge (GuardOrigin=trust, then require)"
    if values.get("BalancerFirewall") == "0":
        return "no firewall: BalancerFirewall=0"
    if is_open:
        return (
            "the URL of the HTTP API passes by the firewall of the load balancer until"
            " HttpApi=closed"
        )
    return ""


def choose_reservation(account: Limits, asked: str | None, *, reserves: bool) -> tuple[str, str]:
    """Return the value of ReserveConcurrency, and a note if consumers are not guarded.

    It is what is asked for, else 1 where the quota has room. ``reserves``: whether the environment
    already does. Raises DeployError if 1 is asked for and cannot be had.
    """
    if asked == "0":
        return "0", f"Lambda: {_UNGUARDED}, because {RESERVE}=0"
    try:
        quota, unreserved = account.read_concurrency()
    except ClientError as error:
        if not is_denied(error):
            raise
        return asked or str(int(reserves)), ""  # check_limits says that the quota is unknown
    needed = UNRESERVED + count_reserved()
    room = quota if reserves else unreserved  # its own are not among the unreserved
    if room >= needed:
        return "1", ""
    need = f"{RESERVE}=1 needs {needed} unreserved concurrent executions, of which Lambda keeps"
    need += f" {UNRESERVED} so; the account has {room}"
    if asked == "1":
        raise DeployError(need)
    # Half of the executions are left if a request takes 500 ms (docs/scaling.md).
    meanwhile = f"; until then RequestsPerSecond={quota} leaves them half of the executions"
    return "0", f"Lambda: {_UNGUARDED}: {need}{meanwhile}"


def count_reserved() -> int:
    """Return how many executions ReserveConcurrency=1 reserves."""
    reserved = re.findall(
        r"ReservedConcurrentExecutions: !If \[ReservesConcurrency, (\d+),", TEMPLATE.read_text()
    )
    return sum(map(int, reserved))


def _read(read: Callable[[], T], name: str) -> Generator[str, None, T | None]:
    """Return what is read; yield that it could not be read, and return None."""
    try:
        return read()
    except ClientError as error:
        if not is_denied(error):
            raise
        yield f"{name} was not checked: {error}"
        return None
