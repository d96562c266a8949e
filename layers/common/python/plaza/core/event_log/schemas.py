"""Schemas of the API: events, as other systems read them."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import ConfigDict, Field

from plaza.core.event_log.model import EventOffset, EventPage
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.schemas import ResponseModel, Time

After = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        pattern=r"^[A-Za-z0-9_-]+$",
        description=(
            "Offset after which to read: `next` of the page before. Without it, the page begins "
            "with the oldest events that are kept."
        ),
        json_schema_extra={"format": "cursor"},
    ),
]
EventLimit = Annotated[int, Query(ge=1, le=1_000, description="Maximum number of events.")]

_EVENT: dict[str, Any] = {
    "id": "like_added_post_9000001_31_1795348800123456",
    "type": "like.added",
    "timestamp": "2026-11-22T12:00:00.123456Z",
    "data": {
        "actor_id": "31",
        "key_id": None,
        "target": {"type": "post", "id": "9000001"},
        "id": None,
        "detail": None,
    },
}


class EventTarget(ResponseModel):
    """The type and the id of what an event is about."""

    type: str
    id: str


class EventData(ResponseModel):
    """What happened."""

    actor_id: Annotated[str, Field(description="The user who did it, or the buyer of an order.")]
    key_id: Annotated[
        str | None,
        Field(description="The server key that moderated for `actor_id`; else null."),
    ]
    target: Annotated[
        EventTarget,
        Field(
            description=(
                "What got the reaction, the post of a comment, the voucher of an order, or what "
                "was reported."
            )
        ),
    ]
    id: Annotated[
        str | None, Field(description="The comment, order or report; null for reactions.")
    ]
    detail: Annotated[
        str | None,
        Field(description="Why an order failed, why a report was made, or its outcome."),
    ]


class EventResponse(ResponseModel):
    """An event. Each has one id for ever; it may be read more than once."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EVENT]})

    id: str
    type: Annotated[
        str,
        Field(
            description=(
                "`like.added`, `follow.removed`, `comment.created`, `order.success`, "
                "`report.resolved`; ignore types that you do not know."
            )
        ),
    ]
    timestamp: Annotated[Time, Field(description="When it happened.")]
    data: EventData


class EventsResponse(ResponseModel):
    """A page of events, and the offset after it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "items": [_EVENT],
                    "next": "WzAsMTIsNywxNzk1MzQ4ODAwXQ",
                    "has_more": False,
                    "events": [_EVENT],
                }
            ]
        }
    )

    items: list[EventResponse]
    next: Annotated[
        str, Field(description="Send it as `after` to read what follows, now or within eight days.")
    ]
    has_more: Annotated[bool, Field(description="Whether there are more events already.")]
    events: Annotated[
        list[EventResponse],
        Field(description="As `items`, for programs of 0.3.0 and before.", deprecated=True),
    ]

    @classmethod
    def of(cls, page: EventPage) -> EventsResponse:
        """Returns ``page`` as the API sends it."""
        items = [event.to_dict() for event in page.events]
        return cls.model_validate(
            {
                "items": items,
                "events": items,
                "next": pack_cursor(*page.next),
                "has_more": page.has_more,
            }
        )


def read_offset(after: str | None) -> EventOffset | None:
    """Return the offset that a cursor has. Raises BadInput."""
    return EventOffset(*unpack_cursor(after, (int, int, int, int), "after")) if after else None
