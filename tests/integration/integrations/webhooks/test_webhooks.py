"""Webhooks: events arrive in order and signed, at least once, whatever ends between two steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.stack.servers import connect_mysql
from plaza.core.event_log import mysql_events, read_events
from plaza.core.reactions import Target, mysql_log, persist
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.infra.aws import secrets
from plaza.infra.http import web_client
from plaza.infra.jobs.operator_commands import Refused
from plaza.infra.mysql import mysql
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import BadInput, Conflict
from plaza.integrations.webhooks import (
    dispatch_events,
    model,
    mysql_webhooks,
    operate_webhooks,
    send_events,
)
from plaza.integrations.webhooks import record_deliveries as recorder
from plaza.integrations.webhooks.model import (
    EVENTS_PER_BATCH,
    MAX_FAILING_S,
    MAX_WEBHOOKS,
    OLD_SECRET_S,
    WebhookMissing,
)
from plaza.integrations.webhooks.queues import DELIVERIES, WEBHOOKS
from plaza.operate.operator_commands import commands
from tests.support.failures import failing
from tests.support.interleave import run_after_statement
from tests.support.plaza import World, decode, forget
from tests.support.receiver import Receiver, is_signed, receiving
from tests.support.stores import add_users

POST = Target("post", 11)
KEY = "k" * 64


@pytest.fixture(autouse=True)
def _settings(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PLAZA_WEBHOOK_LOOPBACK", "1")
    monkeypatch.setenv("PLAZA_WEBHOOK_KEY_ID", "plaza/integrations/webhooks")
    forget()
    monkeypatch.setattr(secrets, "read", lambda _: KEY)
    monkeypatch.setattr(secrets, "read_recent", lambda *_: KEY)
    monkeypatch.setattr(mysql_events, "MIN_HEAD_AGE_S", 0)
    plaza.add(POST)
    add_users(*range(1, 30))
    yield
    forget()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as started:
        yield started


def make(receiver: Receiver, *kinds: str) -> tuple[int, str]:
    return operate_webhooks.make_webhook(receiver.url, kinds, operator_id="test")


def do_like(*actors: int, on: bool = True) -> None:
    at_us = time.time_ns() // 1000
    keys = [ReactionKey(*POST, "like", actor) for actor in actors]
    persist.save([ReactionEvent(key, on, at_us + key.actor_id) for key in keys])


def run(plaza: World) -> None:
    """Dispatch what is due, and run the consumers until nothing is on its way."""
    dispatch_events.dispatch_due()
    while plaza.queues.messages["webhooks"] or plaza.queues.messages["deliveries"]:
        for body in plaza.queues.take(WEBHOOKS):
            WEBHOOKS.handle([decode(WEBHOOKS, body)])
        for body in plaza.queues.take(DELIVERIES):
            DELIVERIES.handle([decode(DELIVERIES, body)])


def let_pass(seconds: float) -> None:
    """Move the times of all webhooks back."""
    mysql.write(
        "UPDATE webhook SET next_at = next_at - INTERVAL %s SECOND,"
        " leased_until = leased_until - INTERVAL %s SECOND,"
        " failing_since = failing_since - INTERVAL %s SECOND,"
        " rotated_at = rotated_at - INTERVAL %s SECOND",
        (seconds,) * 4,
    )


def state_of(webhook_id: int) -> dict[str, Any]:
    [row] = [r for r in operate_webhooks.list_webhooks() if r["webhook_id"] == str(webhook_id)]
    return row


def actors(receiver: Receiver) -> list[str]:
    """Return the actors of the events that were received, in order."""
    return [event_id.split("_")[4] for event_id in receiver.ids]


# ---------------------------------------------------------------- delivery


def test_events_arrive_in_order_and_signed(plaza: World, receiver: Receiver) -> None:
    do_like(1)
    _, secret = make(receiver)
    do_like(2, 3)
    do_like(2, on=False)
    run(plaza)
    assert [body["type"] for body in receiver.bodies()] == ["like.added"] * 2 + ["like.removed"]
    assert actors(receiver) == ["2", "3", "2"]
    for (headers, body), decoded in zip(receiver.requests, receiver.bodies(), strict=True):
        assert is_signed(headers, body, secret)
        assert not is_signed(headers, body + b" ", secret)
        assert headers["webhook-id"] == decoded["id"]
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    run(plaza)
    assert len(receiver.ids) == 3


def test_a_long_backlog_is_sent_batch_after_batch_without_the_schedule(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_events, "EVENTS_PER_BATCH", 4)
    make(receiver)
    do_like(*range(1, 12))
    run(plaza)
    assert actors(receiver) == [str(actor) for actor in range(1, 12)]
    assert EVENTS_PER_BATCH == 100


def test_an_event_that_fails_blocks_its_webhook_and_no_other(plaza: World) -> None:
    with receiving() as bad, receiving() as good:
        webhook_id, _ = make(bad)
        make(good)
        do_like(1, 2, 3)
        bad.statuses = [204, 500]
        run(plaza)
        assert (actors(bad), actors(good)) == (["1"], ["1", "2", "3"])
        assert state_of(webhook_id)["last_error"] == "HTTP 500"
        run(plaza)
        assert actors(bad) == ["1"]  # not before its time
        do_like(4)
        let_pass(6)
        run(plaza)
        assert actors(bad) == ["1", "2", "3", "4"]
        assert (state_of(webhook_id)["failures"], state_of(webhook_id)["last_error"]) == (0, None)


def test_pauses_grow_from_seconds_to_a_day_and_five_days_disable(
    plaza: World, receiver: Receiver
) -> None:
    webhook_id, _ = make(receiver)
    do_like(1)
    receiver.statuses = [503] * 100
    passed_s, pauses = 0.0, []
    while state_of(webhook_id)["state"] == "enabled":
        run(plaza)
        [(pause_s,)] = mysql.fetch_all(
            "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), next_at) FROM webhook"
        )
        pauses.append(int(pause_s) + 1)
        let_pass(pause_s + 2)
        passed_s += pause_s + 2
    assert pauses[0] == pytest.approx(5, abs=2)
    assert max(pauses) == pytest.approx(86_400, abs=2)
    assert pauses[: len(model.RETRIES_S)] == sorted(pauses[: len(model.RETRIES_S)])
    assert MAX_FAILING_S <= passed_s <= MAX_FAILING_S + 2 * 86_400
    count = len(receiver.requests)
    run(plaza)
    assert len(receiver.requests) == count
    assert dispatch_events.dispatch_webhooks()["webhooks_disabled"] == 1
    receiver.statuses = []
    do_like(2)
    operate_webhooks.enable_webhook(webhook_id, operator_id="test")
    run(plaza)
    assert actors(receiver) == ["1", "2"]


def test_types_choose_events_and_others_are_passed(plaza: World, receiver: Receiver) -> None:
    webhook_id, _ = make(receiver, "like.removed")
    do_like(1, 2, 3)
    run(plaza)
    assert receiver.requests == []
    do_like(2, on=False)
    run(plaza)
    assert [body["type"] for body in receiver.bodies()] == ["like.removed"]
    operate_webhooks.change_webhook(webhook_id, None, ["like.added"], operator_id="test")
    do_like(4)
    run(plaza)
    assert receiver.bodies()[-1]["data"]["actor_id"] == "4"


def test_a_redirect_is_a_failure_and_is_not_followed(plaza: World, receiver: Receiver) -> None:
    webhook_id, _ = make(receiver)
    do_like(1)
    receiver.statuses = [302]
    run(plaza)
    assert len(receiver.requests) == 1
    assert state_of(webhook_id)["last_error"] == "HTTP 302"


# ---------------------------------------------------------------- what ends between two steps


class _Ended(BaseException):
    """The process is killed."""


_end = failing(_Ended)


def _end_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        function(*args, **options)
        raise _Ended

    return call


STEPS: dict[str, tuple[Any, str, bool]] = {
    "before the lease": (mysql_webhooks, "lease", False),
    "after the lease": (mysql_webhooks, "lease", True),
    "after the batch was queued": (WEBHOOKS, "try_send", True),
    "before the first request": (send_events, "post", False),
    "after the first request": (send_events, "post", True),
    "before the outcome was queued": (DELIVERIES, "send", False),
    "after the outcome was queued": (DELIVERIES, "send", True),
    "before the outcome was stored": (mysql_webhooks, "record_outcome", False),
    "after the outcome was stored": (mysql_webhooks, "record_outcome", True),
}


@pytest.mark.parametrize("is_delivered_again", [True, False], ids=["again", "lost"])
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_ends_between_two_steps_loses_nothing(
    plaza: World,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    is_delivered_again: bool,
) -> None:
    owner, name, is_after = STEPS[step]
    make(receiver)
    do_like(1, 2, 3)
    before = {queue: list(plaza.queues.messages[queue]) for queue in ("webhooks", "deliveries")}
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, _end_after(getattr(owner, name)) if is_after else _end)
        taken: list[tuple[str, str]] = []
        take = plaza.queues.take

        def take_and_remember(queue: str, *args: Any) -> list[str]:
            bodies = take(queue, *args)
            taken[:] = [(queue, body) for body in bodies]
            return bodies

        patch.setattr(plaza.queues, "take", take_and_remember)
        with pytest.raises(_Ended):
            run(plaza)
    assert before == {"webhooks": [], "deliveries": []}
    if is_delivered_again:  # by SQS: the message that was being handled
        for queue, body in taken:
            plaza.queues.messages[queue].append(body)
    run(plaza)
    let_pass(model.MAX_LEASE_S + 1)
    run(plaza)
    do_like(4)
    run(plaza)
    first = list(dict.fromkeys(actors(receiver)))
    assert first == ["1", "2", "3", "4"]
    assert dispatch_events.dispatch_due() == 0


def test_a_queue_that_refuses_does_not_keep_the_lease(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(receiver)
    do_like(1)

    with monkeypatch.context() as patch:
        patch.setattr(WEBHOOKS, "send", failing(QueueDown("down, simulated by a test")))
        assert dispatch_events.dispatch_due() == 0
    run(plaza)
    assert actors(receiver) == ["1"]


def test_one_batch_of_a_webhook_is_on_its_way_at_a_time(plaza: World, receiver: Receiver) -> None:
    make(receiver)
    do_like(1)
    assert dispatch_events.dispatch_due() == 1
    do_like(2)
    assert dispatch_events.dispatch_due() == 0
    run(plaza)
    assert actors(receiver) == ["1", "2"]


def test_a_batch_that_is_too_old_is_not_sent(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(receiver)
    do_like(1)
    dispatch_events.dispatch_due()
    [body] = plaza.queues.take("webhooks")
    now_s = clock.now_s()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_s", lambda: now_s + model.MAX_LEASE_S + 1)
        send_events.send_events([decode(WEBHOOKS, body)])
    assert (receiver.requests, plaza.queues.messages["deliveries"]) == ([], [])


def test_a_late_outcome_of_an_earlier_batch_changes_nothing(
    plaza: World, receiver: Receiver
) -> None:
    webhook_id, _ = make(receiver)
    do_like(1)
    dispatch_events.dispatch_due()
    [body] = plaza.queues.take("webhooks")
    send_events.send_events([decode(WEBHOOKS, body)])
    [late] = plaza.queues.take("deliveries")
    let_pass(model.MAX_LEASE_S + 1)
    run(plaza)
    do_like(2)
    run(plaza)
    before = mysql_webhooks.read(webhook_id)
    recorder.record_deliveries([decode(DELIVERIES, late)])
    assert mysql_webhooks.read(webhook_id) == before


# ---------------------------------------------------------------- operators


def test_a_replay_sends_the_events_since_a_time_again(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id, _ = make(receiver)
    do_like(1)
    run(plaza)
    now_s = clock.now_s()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_s", lambda: now_s - 300)
        mysql.write("DELETE FROM event_offset")
        read_events.find_head()
    do_like(2, 3)
    run(plaza)
    since = datetime.fromtimestamp(now_s - 120, UTC)
    begin = operate_webhooks.replay(webhook_id, since, operator_id="test")
    assert begin <= since
    run(plaza)
    assert actors(receiver) == ["1", "2", "3", "2", "3"]
    with pytest.raises(BadInput):
        operate_webhooks.replay(webhook_id, since - timedelta(days=9), operator_id="test")
    with pytest.raises(BadInput):
        operate_webhooks.replay(webhook_id, since + timedelta(days=1), operator_id="test")


def test_a_replay_during_a_batch_is_not_undone_by_its_outcome(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id, _ = make(receiver)
    now_s = clock.now_s()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_s", lambda: now_s - 300)
        mysql.write("DELETE FROM event_offset")
        read_events.find_head()
    do_like(1)
    dispatch_events.dispatch_due()
    since = datetime.fromtimestamp(now_s - 120, UTC)
    operate_webhooks.replay(webhook_id, since, operator_id="test")
    run(plaza)
    assert actors(receiver) == ["1", "1"]


def test_two_secrets_sign_for_a_day_after_a_rotation(plaza: World, receiver: Receiver) -> None:
    webhook_id, first = make(receiver)
    second = operate_webhooks.rotate_secret(webhook_id, operator_id="test")
    assert first != second
    do_like(1)
    run(plaza)
    headers, body = receiver.requests[-1]
    assert is_signed(headers, body, first)
    assert is_signed(headers, body, second)
    let_pass(OLD_SECRET_S + 1)
    do_like(2)
    run(plaza)
    headers, body = receiver.requests[-1]
    assert not is_signed(headers, body, first)
    assert is_signed(headers, body, second)


def test_an_ended_webhook_gets_nothing_and_cannot_be_changed(
    plaza: World, receiver: Receiver
) -> None:
    webhook_id, _ = make(receiver)
    operate_webhooks.end_webhook(webhook_id, operator_id="test")
    do_like(1)
    run(plaza)
    assert receiver.requests == []
    for change in (operate_webhooks.enable_webhook, operate_webhooks.rotate_secret):
        with pytest.raises(WebhookMissing):
            change(webhook_id, operator_id="test")


def test_a_webhook_that_is_behind_for_more_than_eight_days_is_disabled(
    plaza: World, receiver: Receiver
) -> None:
    webhook_id, _ = make(receiver)
    mysql.write("UPDATE webhook SET read_s = read_s - 9 * 86400")
    do_like(1)
    run(plaza)
    assert state_of(webhook_id)["state"] == "disabled"
    assert "archive" in state_of(webhook_id)["last_error"]


def call_once_before(
    patch: pytest.MonkeyPatch, owner: Any, name: str, work: Callable[[], object]
) -> None:
    """Run ``work`` before the next call of a function."""
    function = getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        patch.setattr(owner, name, function)
        work()
        return function(*args, **options)

    patch.setattr(owner, name, call)


def test_a_new_type_that_is_added_while_a_page_is_read_is_sent(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id, _ = make(receiver, "like.removed")
    do_like(1)

    def change_types() -> None:
        kinds = ["like.added", "like.removed"]
        operate_webhooks.change_webhook(webhook_id, None, kinds, operator_id="test")

    call_once_before(monkeypatch, read_events, "read_page", change_types)
    run(plaza)
    run(plaza)
    assert actors(receiver) == ["1"]


def test_a_change_during_a_batch_sends_its_events_once(plaza: World, receiver: Receiver) -> None:
    webhook_id, _ = make(receiver)
    do_like(1)
    dispatch_events.dispatch_due()
    operate_webhooks.change_webhook(webhook_id, None, ["like.added"], operator_id="test")
    run(plaza)
    let_pass(model.MAX_LEASE_S + 1)
    do_like(2)
    run(plaza)
    assert actors(receiver) == ["1", "2"]


def test_a_restore_between_two_reads_of_a_dispatcher_disables_no_webhook(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id, _ = make(receiver)
    do_like(1)
    call_once_before(monkeypatch, read_events, "read_page", mysql_log.raise_epoch)
    run(plaza)
    assert state_of(webhook_id)["state"] == "enabled"
    run(plaza)
    assert actors(receiver) == ["1"]


def set_back(webhook_id: int) -> None:
    """Replay the newest 100 s, from a offset of five minutes ago, before all events."""
    since = datetime.fromtimestamp(clock.now_s() - 100, UTC)
    operate_webhooks.replay(webhook_id, since, operator_id="test")


def test_a_replayed_webhook_is_not_moved_or_disabled_by_an_earlier_dispatcher(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id, _ = make(receiver, "like.added")
    minute = int(clock.now_s()) // 60 - 5
    mysql.write("DELETE FROM event_offset")
    mysql_events.store_head(read_events.find_head(), minute)
    do_like(1)
    run(plaza)
    do_like(1, on=False)  # which it passes over
    call_once_before(monkeypatch, mysql_webhooks, "pass_events", lambda: set_back(webhook_id))
    dispatch_events.dispatch_due()
    run(plaza)
    assert actors(receiver) == ["1", "1"]
    mysql.write("UPDATE webhook SET reaction_seq = 0, read_s = read_s - 9 * 86400")
    call_once_before(monkeypatch, mysql_webhooks, "disable", lambda: set_back(webhook_id))
    dispatch_events.dispatch_due()
    run(plaza)
    assert (state_of(webhook_id)["state"], actors(receiver)) == ("enabled", ["1"] * 3)


def test_an_enabled_webhook_may_fail_for_five_days_again(plaza: World, receiver: Receiver) -> None:
    webhook_id, _ = make(receiver)
    do_like(1)
    receiver.statuses = [500] * 3
    run(plaza)
    let_pass(MAX_FAILING_S + 1)
    run(plaza)
    assert state_of(webhook_id)["state"] == "disabled"
    operate_webhooks.enable_webhook(webhook_id, operator_id="test")
    run(plaza)
    assert (state_of(webhook_id)["state"], state_of(webhook_id)["failures"]) == ("enabled", 1)


def test_the_number_of_webhooks_is_limited(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_webhooks, "MAX_WEBHOOKS", 1)
    make(receiver)
    with pytest.raises(Conflict):
        make(receiver)
    assert MAX_WEBHOOKS == 50


def test_the_first_webhooks_that_are_made_at_once_are_limited(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, mysql_url: str
) -> None:
    monkeypatch.setattr(mysql_webhooks, "MAX_WEBHOOKS", 1)
    with closing(connect_mysql(mysql_url)) as other, other.cursor() as cursor:
        run_after_statement(
            monkeypatch,
            lambda: cursor.execute(
                "INSERT INTO webhook (id, url, kinds, state, reaction_seq, event_seq, read_s)"
                " VALUES (1, '', '', 'enabled', 0, 0, 0)"
            ),
        )
        with pytest.raises(Conflict):
            make(receiver)
    assert len(operate_webhooks.list_webhooks()) == 1


def test_secrets_are_in_no_message_row_or_log_line(
    plaza: World, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    made = commands.run(
        {"command": "make-webhook", "arguments": {"url": receiver.url + "?t=hush"}, "caller": "ada"}
    )
    do_like(1)
    dispatch_events.dispatch_due()
    bodies = "".join(plaza.queues.messages["webhooks"])
    run(plaza)
    rows = str(mysql.fetch_all("SELECT * FROM webhook"))
    lines = capsys.readouterr().out
    secret = made["secret"]
    assert is_signed(*receiver.requests[0], secret)
    for text in (bodies, rows, lines, str(operate_webhooks.list_webhooks())):
        assert secret not in text
        assert KEY not in text
    assert "hush" not in lines


def test_operators_run_the_commands(receiver: Receiver) -> None:
    def do(command: str, **arguments: str) -> dict[str, Any]:
        return commands.run({"command": command, "arguments": arguments, "caller": "ada"})

    made = do("make-webhook", url=receiver.url, types="like.added,comment.created")
    webhook_id = made["webhook_id"]
    [row] = do("list-webhooks")["webhooks"]
    assert row["types"] == ["comment.created", "like.added"]
    do("change-webhook", webhook_id=webhook_id, types="")
    assert do("list-webhooks")["webhooks"][0]["types"] == []
    assert do("rotate-webhook-secret", webhook_id=webhook_id)["secret"] != made["secret"]
    do("enable-webhook", webhook_id=webhook_id)
    with pytest.raises(Refused):
        do("replay-webhook", webhook_id=webhook_id, since="yesterday")
    do("end-webhook", webhook_id=webhook_id)
    assert do("list-webhooks")["webhooks"][0]["state"] == "ended"


def test_a_slow_receiver_is_left_in_time(
    plaza: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook_id, _ = make(receiver)
    do_like(1, 2)
    monkeypatch.setattr(send_events, "MAX_SEND_S", 0)
    dispatch_events.dispatch_due()
    [body] = plaza.queues.take("webhooks")
    send_events.send_events([decode(WEBHOOKS, body)])
    [outcome] = plaza.queues.take("deliveries")
    assert decode(DELIVERIES, outcome).received == 0
    assert decode(DELIVERIES, outcome).error is None
    recorder.record_deliveries([decode(DELIVERIES, outcome)])
    assert state_of(webhook_id)["failures"] == 0
    assert WEBHOOKS.visibility_s / 6 > web_client.MAX_REQUEST_S + 15
