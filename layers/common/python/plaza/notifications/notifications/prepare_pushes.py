"""Compose pushes from what is stored when they are sent, and queue one for each browser."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plaza.infra.contexts import offers
from plaza.infra.queues.announcements import Notice, NoticeKind, NoticeText
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record
from plaza.notifications.notifications import queries as unread_queries
from plaza.notifications.notifications.listed import MAX_TEXT, GroupSubject, encode_order
from plaza.notifications.notifications.model import ListedGroup, UnreadState
from plaza.notifications.notifications.subjects import read_subjects
from plaza.notifications.push import PushRequest, PushTask, Recipient, prepared, topic_of
from plaza.notifications.push.queues import PUSHES

__all__ = ["PUSHES", "prepare"]

MAX_GROUPS = 10  # of a user in one run; the list has the others


@dataclass(frozen=True, slots=True)
class _Push:
    """What one push says; its browsers show it in the language of the user."""

    user_id: int
    kind: str
    subject_type: str
    subject_id: int
    subject: GroupSubject
    fresh: int = 1
    what: str | None = None

    @property
    def topic(self) -> str:
        return topic_of(self.user_id, self.kind, self.subject_type, self.subject_id)

    def render(self, state: UnreadState) -> str:
        subject = {"type": self.subject_type, **self.subject._asdict()}
        payload: dict[str, Any] = {
            "topic": self.topic,
            "user_id": str(self.user_id),
            "kind": self.kind,
            "subject": subject,
            "fresh": self.fresh,
            "what": self.what,
            "unread": state.unread,
            "at": encode_order(state.version),
        }
        return json.dumps(payload, ensure_ascii=False, separators=(",", ":"))


@PUSHES.consumer
def prepare(tasks: Sequence[PushTask]) -> None:
    """Queue a push for each group that notified since the last push to its user and still has
    something new, and for each notice that still holds; of the kinds that the user wants.

    At least once: a process that ends before the sequences are stored queues them again. Statements
    and round trips do not grow with the tasks: ten and three at most. Raises MysqlDown, RedisDown,
    QueueDown.
    """
    prepared.end_subscriptions({ended for task in tasks for ended in task.ended})
    users = {user_id for task in tasks for user_id in task.users}
    notices = {notice for task in tasks for notice in task.notices}
    concerned = sorted(users | {notice.user_id for notice in notices})
    recipients = prepared.read_recipients(concerned) if concerned else {}
    if not recipients:
        return
    states = unread_queries.read_states(
        recipients
    )  # before the groups: what notifies later is later
    notified = unread_queries.read_notified_groups(
        {i: recipients[i].pushed_sequence for i in sorted(users & recipients.keys())}, MAX_GROUPS
    )
    pushes = [*_of_groups(notified), *_of_notices(n for n in notices if n.user_id in recipients)]
    requests = list(_requests(pushes, recipients, states))
    prepared.send_requests(requests, {i: states[i].sequence for i in users & recipients.keys()})
    record("pushes_prepared", {"pushes_prepared": len(requests)}, users=len(recipients))


def _of_groups(groups: Sequence[ListedGroup]) -> list[_Push]:
    subjects = read_subjects([group.key for group in groups])
    return [
        _Push(*group.key, subjects[group.key.subject], group.fresh)
        for group in groups
        if group.key.subject in subjects
    ]


def _of_notices(notices: Iterable[Notice]) -> list[_Push]:
    by_kind: dict[str, list[Notice]] = {}
    for notice in notices:
        by_kind.setdefault(notice.kind, []).append(notice)
    kinds: list[NoticeKind] = [kind for _, kind in offers("pushes")]
    return [
        _push(notice, kind.subject_type, text)
        for kind in kinds
        if kind.name in by_kind
        for notice, text in kind.read(by_kind[kind.name]).items()
    ]


def _push(notice: Notice, subject_type: str, text: NoticeText) -> _Push:
    subject = GroupSubject(str(notice.subject_id), (text.title or "")[:MAX_TEXT] or None)
    kind, user_id, subject_id = notice
    return _Push(user_id, kind, subject_type, subject_id, subject, what=text.what)


def _requests(
    pushes: Iterable[_Push],
    recipients: Mapping[int, Recipient],
    states: Mapping[int, UnreadState],
) -> Iterator[PushRequest]:
    now_s = int(clock.now_s())
    for push in pushes:
        recipient = recipients[push.user_id]
        if push.kind not in recipient.off:
            payload = push.render(states[push.user_id])
            for subscription in recipient.subscriptions:
                yield PushRequest(push.user_id, subscription, push.topic, payload, now_s)
