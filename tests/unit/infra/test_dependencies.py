"""Calls of a dependency: outages, repeats, errors."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from plaza.infra.runtime import dependencies, process
from plaza.infra.runtime.dependencies import Dependency, DependencyDown, RetryRule


class SomeDown(DependencyDown):
    """The error of an outage."""


class Translated(Exception):
    """The error of a refusal."""


class ClientError(Exception):
    """An error of the client library."""


def failing(*errors: Exception) -> Callable[[], int]:
    """Return work that raises these errors in turn, and then returns how often it was called."""
    left = list(errors)
    attempts = 0

    def work() -> int:
        nonlocal attempts
        attempts += 1
        if left:
            raise left.pop(0)
        return attempts

    return work


def contains(word: str) -> Callable[[BaseException], bool]:
    return lambda error: word in str(error)


OUTAGE, UNSENT, REFUSED, OTHER = (
    ClientError(word) for word in ("outage", "outage, unsent", "refused", "other")
)


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch) -> Dependency:
    """A dependency in the place of S3, which this process forgets."""
    monkeypatch.setattr(dependencies, "_declared", {})
    monkeypatch.setattr(dependencies, "unreported", deque(maxlen=20))
    monkeypatch.setattr(process, "_resets", [])
    return Dependency(
        name="S3",
        down=SomeDown,
        errors=lambda: (ClientError,),
        is_outage=contains("outage"),
        is_unsent=contains("unsent"),
        translate=lambda error: Translated() if "refused" in str(error) else error,
    )


def test_an_outage_raises_the_error_of_the_dependency(some: Dependency) -> None:
    with pytest.raises(SomeDown, match=r"^S3 is unavailable: ClientError$") as caught:
        some.call(failing(OUTAGE))
    assert caught.value.may_have_run
    assert caught.value.__cause__ is OUTAGE


def test_an_unsent_call_cannot_have_run(some: Dependency) -> None:
    with pytest.raises(SomeDown) as caught:
        some.call(failing(UNSENT))
    assert not caught.value.may_have_run


def test_an_error_reply_is_translated_or_raised_unchanged(some: Dependency) -> None:
    with pytest.raises(Translated) as caught:
        some.call(failing(REFUSED))
    assert caught.value.__cause__ is REFUSED
    with pytest.raises(ClientError) as raised:
        some.call(failing(OTHER))
    assert raised.value is OTHER
    with pytest.raises(KeyError):
        some.call(failing(KeyError("x")))


def test_outages_in_a_row_open_the_breaker_and_error_replies_do_not(some: Dependency) -> None:
    for error in [OUTAGE] * 4 + [OTHER] + [OUTAGE] * 4:
        with pytest.raises((SomeDown, ClientError)):
            some.call(failing(error))
    assert some.breaker.current_state == "closed"
    with pytest.raises(SomeDown):
        some.call(failing(OUTAGE))
    assert some.breaker.current_state == "open"
    with pytest.raises(SomeDown, match="breaker is open") as caught:
        some.call(failing())
    assert not caught.value.may_have_run


def fail_times(some: Dependency, count: int) -> None:
    for _ in range(count):
        with pytest.raises(SomeDown):
            some.call(failing(OUTAGE))


def test_a_success_between_outages_keeps_the_breaker_closed(some: Dependency) -> None:
    fail_times(some, 4)
    assert some.call(failing()) == 1
    assert some.breaker.fail_counter == 0
    fail_times(some, 4)
    assert some.breaker.current_state == "closed"


def test_a_half_open_breaker_closes_after_a_success_and_opens_after_an_outage(
    some: Dependency,
) -> None:
    fail_times(some, 5)
    some.breaker.half_open()
    fail_times(some, 1)
    assert some.breaker.current_state == "open"
    some.breaker.half_open()
    assert some.call(failing()) == 1
    assert (some.breaker.current_state, some.breaker.fail_counter) == ("closed", 0)


@pytest.mark.parametrize("failures", [0, 1])
def test_threads_that_share_a_client_take_turns(some: Dependency, failures: int) -> None:
    fail_times(some, failures)
    count = 0

    def work() -> None:
        nonlocal count
        before = count
        time.sleep(0)  # lets another thread run
        count = before + 1

    with ThreadPoolExecutor(8) as crowd:
        for _ in crowd.map(lambda _: some.call(work), range(400)):
            pass
    assert count == 400


def test_work_may_call_its_dependency(some: Dependency) -> None:
    assert some.call(lambda: some.call(failing())) == 1


def test_work_is_repeated_once_for_each_pause_of_its_rule(some: Dependency) -> None:
    lost, locked = (
        RetryRule(contains("outage")),
        RetryRule(contains("refused"), pauses_s=((0, 0), (0, 0.001))),
    )
    assert some.call(failing(REFUSED, OUTAGE, REFUSED), lost, locked) == 4
    assert some.breaker.fail_counter == 0, "a call that succeeds at last is no failure"
    with pytest.raises(Translated):
        some.call(failing(REFUSED, REFUSED, REFUSED), lost, locked)
    with pytest.raises(SomeDown):
        some.call(failing(OUTAGE, OUTAGE), lost, locked)
    assert some.breaker.fail_counter == 1, "the attempts of a call are one failure"


def test_the_retry_rules_of_a_dependency_apply_to_all_work(some: Dependency) -> None:
    some.retries = (RetryRule(contains("outage")),)
    assert some.call(failing(OUTAGE)) == 2
    assert some.call(failing(OUTAGE, REFUSED), RetryRule(contains("refused"))) == 3


def test_clean_up_runs_after_each_error_and_before_a_repeat(some: Dependency) -> None:
    errors: list[BaseException] = []
    some.clean_up = errors.append
    with pytest.raises(ClientError):
        some.call(failing(OUTAGE, OTHER), RetryRule(contains("outage")))
    assert errors == [OUTAGE, OTHER]
