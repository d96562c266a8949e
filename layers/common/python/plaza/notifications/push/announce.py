"""Announce that something is to be pushed: after the commit, by consumers that are repeated until
they end, so that at least one announcement of it arrives. What is pushed is read later."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from plaza.infra.queues import sqs
from plaza.infra.queues.announcements import Notice
from plaza.infra.queues.queue import QueueDown
from plaza.infra.queues.spill import send_spilled, spill
from plaza.notifications.push import mysql_store
from plaza.notifications.push.model import COALESCED_S, PushTask
from plaza.notifications.push.queues import MAX_USERS, PUSHES
from plaza.notifications.push.settings import push_settings

_DUE_S = COALESCED_S - 5  # ends before the message arrives, however long its sending takes


def is_on() -> bool:
    """Return whether this deployment pushes."""
    return push_settings().is_on


def announce_notified(user_ids: Collection[int]) -> None:
    """Push to users, changed or not, what notified up to the end of the next 30 s. Nothing for
    users for whom that is announced already. One statement; one more and a message for 100 users if
    some of them have a subscription. Raises MysqlDown."""
    if not user_ids or not is_on():
        return
    unscheduled = mysql_store.find_unscheduled(sorted(user_ids))
    for start in range(0, len(unscheduled), MAX_USERS):
        _send(PushTask(users=unscheduled[start : start + MAX_USERS]), COALESCED_S)
    if unscheduled:
        mysql_store.set_due(unscheduled, _DUE_S)


def announce_notices(notices: Collection[Notice]) -> None:
    """Push notices to their users who have a subscription. One statement, and a message
    for 100 of them. Raises MysqlDown."""
    if not notices or not is_on():
        return
    recipients = mysql_store.find_recipients(sorted({notice.user_id for notice in notices}))
    of_recipients = [notice for notice in notices if notice.user_id in recipients]
    for start in range(0, len(of_recipients), MAX_USERS):
        _send(PushTask(notices=of_recipients[start : start + MAX_USERS]), 0)


def resend() -> int:
    """Send what SQS refused; return how many messages it accepted. Two statements a page. Raises
    MysqlDown, QueueDown."""
    return send_spilled(PUSHES.name, partial(sqs.send_all, PUSHES.name))


def _send(task: PushTask, delay_s: int) -> None:
    """Send a task; what SQS refuses is stored for the sweeper."""
    try:
        PUSHES.send(task, delay_s)
    except QueueDown as error:
        PUSHES.record_unsent(1, error)
        spill(PUSHES.name, PUSHES.encode(task))
