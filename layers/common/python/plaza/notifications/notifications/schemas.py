"""Schemas of the API: unread counters and notifications."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from plaza.core.targets.schemas import NamedTarget, TypeText
from plaza.infra.http.schemas import RequestModel, ResponseModel, Time
from plaza.infra.mysql.participants import GroupKey
from plaza.notifications.notifications.listed import Notification, NotificationPage, encode_order
from plaza.notifications.notifications.model import UnreadState
from plaza.people.users.schemas import UserCard

NotificationKind = Literal["like", "comment", "follow"]

ORDER_PATTERN = r"^[0-9A-Za-z_-]{1,64}$"
_AT = (
    "Orders answers: of two, the one with the greater text is newer. Compare by code units, never "
    "with a locale. Opaque."
)
_At = Annotated[str, Field(pattern=ORDER_PATTERN, description=_AT)]
_Unread = Annotated[
    int, Field(ge=0, description="Notifications with something new. Exact, without a cap.")
]
_UNREAD: dict[str, Any] = {"unread": 3, "at": "1--F-----t"}
_UNREAD_AFTER: dict[str, Any] = {"unread": 1, "at": "1--F-----v"}
_SUBJECT: dict[str, Any] = {"type": "post", "id": "9000001"}
_NOTIFICATION: dict[str, Any] = {
    "kind": "like",
    "subject": {**_SUBJECT, "text": "Noodles", "url": None},
    "total": 13,
    "fresh": 3,
    "read": False,
    "actors": [{"id": "31", "nickname": "grace", "avatar": None}],
    "changed_at": "2026-11-26T15:00:00.518304Z",
}


class UnreadResponse(ResponseModel):
    """The caller's unread counter."""

    model_config = ConfigDict(json_schema_extra={"examples": [_UNREAD]})

    unread: _Unread
    at: _At

    @classmethod
    def of(cls, state: UnreadState) -> UnreadResponse:
        """Returns ``state`` as the API sends it."""
        return cls(unread=state.unread, at=encode_order(state.version))


class NotificationSubjectRef(NamedTarget):
    """What a notification is about."""


class NotificationSubject(ResponseModel):
    """What a notification is about; of a follow, the caller."""

    type: TypeText
    id: str
    text: Annotated[
        str | None, Field(description="The first 80 characters of its title or text; null: none.")
    ]
    url: Annotated[
        str | None, Field(description="Where a target of the app is shown; null for others.")
    ]


class NotificationResponse(ResponseModel):
    """All likes or comments of a text of the caller, or all follows."""

    model_config = ConfigDict(json_schema_extra={"examples": [_NOTIFICATION]})

    kind: NotificationKind
    subject: NotificationSubject
    total: Annotated[
        int, Field(ge=0, description="Likes or follows by others, or comments, new or not.")
    ]
    fresh: Annotated[int, Field(ge=0, description="What is new since it was read.")]
    read: Annotated[bool, Field(description="Whether nothing is new.")]
    actors: Annotated[list[UserCard], Field(description="The newest users, three at most.")]
    changed_at: Annotated[Time, Field(description="When something was new last.")]

    @classmethod
    def of(cls, notification: Notification) -> NotificationResponse:
        """Returns ``notification`` as the API sends it."""
        group = notification.group
        subject: dict[str, Any] = {
            "type": group.key.subject_type,
            **notification.subject._asdict(),
        }
        return cls(
            kind=group.key.kind,  # type: ignore[arg-type]
            subject=NotificationSubject(**subject),
            total=notification.total,
            fresh=group.fresh,
            read=group.fresh == 0,
            actors=[UserCard.of(card) for card in notification.actors],
            changed_at=group.changed_at.replace(tzinfo=UTC),
        )


class NotificationsResponse(UnreadResponse):
    """A page of notifications, and the unread counter of the same instant."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_UNREAD, "items": [_NOTIFICATION], "next": None}]}
    )

    items: list[NotificationResponse]
    next: Annotated[str | None, Field(description="`cursor` of the next page; null: the end.")]

    @classmethod
    def of_page(cls, page: NotificationPage, following: str | None) -> NotificationsResponse:
        """Returns ``page`` as the API sends it."""
        return cls(
            unread=page.state.unread,
            at=encode_order(page.state.version),
            items=[NotificationResponse.of(item) for item in page.items],
            next=following,
        )


class NotificationRef(RequestModel):
    """A notification."""

    kind: NotificationKind
    subject: NotificationSubjectRef


class MarkReadRequest(RequestModel):
    """What becomes read."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"at": _UNREAD["at"], "groups": [{"kind": "like", "subject": _SUBJECT}]},
                {"at": _UNREAD["at"]},
            ]
        }
    )

    at: Annotated[
        str,
        Field(
            pattern=ORDER_PATTERN,
            description="`at` of the first page that was displayed. What is new since stays new.",
        ),
    ]
    groups: Annotated[
        list[NotificationRef] | None,
        Field(max_length=100, description="The notifications; without it, all."),
    ] = None

    def keys_of(self, user_id: int) -> list[GroupKey] | None:
        """Returns the keys of the groups of a user, None for all."""
        if self.groups is None:
            return None
        return [GroupKey(user_id, ref.kind, *ref.subject.to_target()) for ref in self.groups]


class MarkReadResponse(UnreadResponse):
    """The unread counter after the mark."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_UNREAD_AFTER, "left": 0}]})

    left: Annotated[
        int, Field(ge=0, description="Notifications that the same request would mark: repeat it.")
    ]
