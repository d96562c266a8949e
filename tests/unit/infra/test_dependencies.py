"""How a dependency is called: what counts as a failure, what is repeated, what a caller gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plaza.infra.dependencies import Dependency, DependencyDown, RetryRule


class SomeDown(DependencyDown):
    """What callers get."""


class Translated(Exception):
    """What callers get for a refusal."""


class ClientError(Exception):
    """What the library raises."""


def failing(*errors: Exception) -> Callable[[], int]:
    """Work that fails by these, one at a time, and then returns how often it was done."""
    left = list(errors)
    attempts = 0

    def work() -> int:
        nonlocal attempts
        attempts += 1
        if left:
            raise left.pop(0)
        return attempts

    return work


def says(word: str) -> Callable[[BaseException], bool]:
    return lambda error: word in str(error)


AWAY, UNSENT, REFUSED, OTHER = (
    ClientError(word) for word in ("away", "away, unsent", "refused", "other")
)


@pytest.fixture
def some() -> Dependency:
    return Dependency(
        name="S3",
        down=SomeDown,
        errors=(ClientError,),
        is_outage=says("away"),
        is_unsent=says("unsent"),
        translate=lambda error: Translated() if "refused" in str(error) else error,
    )


def test_an_outage_raises_the_error_of_the_dependency(some: Dependency) -> None:
    with pytest.raises(SomeDown, match=r"^S3 is unavailable: ClientError$") as caught:
        some.call(failing(AWAY))
    assert caught.value.may_have_run
    assert caught.value.__cause__ is AWAY


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
        some.call(failing(KeyError("mine")))


def test_outages_in_a_row_open_the_breaker_and_error_replies_do_not(some: Dependency) -> None:
    for error in [AWAY] * 4 + [OTHER] + [AWAY] * 4:
        with pytest.raises((SomeDown, ClientError)):
            some.call(failing(error))
    assert some.breaker.current_state == "closed"
    with pytest.raises(SomeDown):
        some.call(failing(AWAY))
    assert some.breaker.current_state == "open"
    with pytest.raises(SomeDown, match="breaker is open") as caught:
        some.call(failing())
    assert not caught.value.may_have_run


def test_work_is_repeated_once_for_each_pause_of_its_rule(some: Dependency) -> None:
    lost, locked = (
        RetryRule(says("away")),
        RetryRule(says("refused"), pauses_s=((0, 0), (0, 0.001))),
    )
    assert some.call(failing(REFUSED, AWAY, REFUSED), lost, locked) == 4
    assert some.breaker.fail_counter == 0, "what passed is no failure"
    with pytest.raises(Translated):
        some.call(failing(REFUSED, REFUSED, REFUSED), lost, locked)
    with pytest.raises(SomeDown):
        some.call(failing(AWAY, AWAY), lost, locked)
    assert some.breaker.fail_counter == 1, "the attempts of a call are one failure"


def test_the_retry_rules_of_a_dependency_apply_to_all_work(some: Dependency) -> None:
    some.retries = (RetryRule(says("away")),)
    assert some.call(failing(AWAY)) == 2
    assert some.call(failing(AWAY, REFUSED), RetryRule(says("refused"))) == 3


def test_clean_up_runs_after_each_error_and_before_a_repeat(some: Dependency) -> None:
    seen: list[BaseException] = []
    some.clean_up = seen.append
    with pytest.raises(ClientError):
        some.call(failing(AWAY, OTHER), RetryRule(says("away")))
    assert seen == [AWAY, OTHER]
