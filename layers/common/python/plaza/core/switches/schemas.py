"""Schemas of the API: switches and their changes, for admins."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from plaza.core.switches.change_switches import ListedChange
from plaza.core.switches.model import LEVELS, SwitchChange, Switches, level_of
from plaza.infra.http.schemas import (
    ACCEPT_INTEGRAL_FLOAT,
    IdText,
    RequestModel,
    ResponseModel,
    Time,
)
from plaza.infra.http.texts import TEXT_RULE, VISIBLE, check_text
from plaza.infra.mysql.sql import from_us

MAX_STOPPED_SALES = 100

LevelName = Literal["normal", "relieved", "essential", "read_only", "warming"]

_SWITCHES_EXAMPLE: dict[str, Any] = asdict(LEVELS["relieved"]) | {"stopped_sales": ["9400001"]}
_CHANGE_EXAMPLE: dict[str, Any] = {
    "version": 3,
    "level": "relieved",
    "reason": "MySQL is at its limit since the evening.",
    "changed_by": "7",
    "changed_at": "2026-11-22T18:04:09.123456Z",
}

_Factor = Annotated[
    float,
    Field(ge=0.1, le=10, description="Multiplies rate and burst of a rate limit; 1 is normal."),
]
_Version = Annotated[
    int,
    Field(ge=0, le=2**53, description="`version` of the switches that the caller read."),
    ACCEPT_INTEGRAL_FLOAT,
]
_Reason = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description=f"Why, for the other operators. {TEXT_RULE}",
        json_schema_extra={"pattern": VISIBLE},
    ),
    AfterValidator(check_text),
]


class SwitchSet(RequestModel):
    """All switches."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SWITCHES_EXAMPLE]})

    read_only: Annotated[
        bool,
        Field(
            description="No request changes anything, except `/ops`, `/auth` and the end of a"
            " user's sessions. No new accounts."
        ),
    ]
    readers_held: Annotated[
        bool,
        Field(
            description="Reading is a 503 with `Retry-After`, except for admins and of `/health`"
            " and orders. WarmUp ends the level `warming`, which has it."
        ),
    ]
    comments_stopped: Annotated[bool, Field(description="No new comments.")]
    posts_stopped: Annotated[bool, Field(description="No new posts and no changes of posts.")]
    notifications_stopped: Annotated[
        bool, Field(description="Nothing new notifies. What ends is still taken back.")
    ]
    sign_ups_stopped: Annotated[bool, Field(description="No new accounts. Users can sign in.")]
    stopped_sales: Annotated[
        list[IdText],
        Field(max_length=MAX_STOPPED_SALES, description="Vouchers that cannot be ordered."),
    ]
    cached_lists_only: Annotated[
        bool, Field(description="Rankings and recommendations as last built, from Redis only.")
    ]
    reads_factor: _Factor
    writes_factor: _Factor
    anonymous_factor: _Factor
    log_sample_rate: Annotated[
        float, Field(ge=0.001, le=1, description="Share of the successful requests that is logged.")
    ]
    live_poll_s: Annotated[
        int,
        Field(
            ge=0,
            le=60,
            description="Interval at which clients read the totals on their screens, in seconds."
            " 0: they do not.",
        ),
        ACCEPT_INTEGRAL_FLOAT,
    ]

    def to_values(self) -> dict[str, Any]:
        """Returns the switches as values of the model layer."""
        return self.model_dump() | {"stopped_sales": frozenset(self.stopped_sales)}


class SwitchSetResponse(SwitchSet):
    """All switches of this version."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, switches: Switches) -> SwitchSetResponse:
        """Returns ``switches`` as the API sends them."""
        return cls(**asdict(switches) | {"stopped_sales": sorted(switches.stopped_sales)})


class SwitchesRequest(RequestModel):
    """All switches, as they should be, and why."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "reason": _CHANGE_EXAMPLE["reason"],
                    "version": 2,
                    "switches": _SWITCHES_EXAMPLE,
                }
            ]
        }
    )

    reason: _Reason
    version: _Version
    switches: SwitchSet


class LevelRequest(RequestModel):
    """A level of degradation, and why."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"reason": _CHANGE_EXAMPLE["reason"], "version": 2, "level": "relieved"}]
        }
    )

    reason: _Reason
    version: _Version
    level: LevelName


class SwitchesResponse(ResponseModel):
    """The current switches, and their newest change."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_CHANGE_EXAMPLE | {"switches": _SWITCHES_EXAMPLE}]}
    )

    version: Annotated[int, Field(description="Number of the change; 0 before the first one.")]
    level: Annotated[LevelName | None, Field(description="Null if no level has these switches.")]
    switches: SwitchSetResponse
    reason: str | None
    changed_by: Annotated[str | None, Field(description="User id of the operator.")]
    changed_at: Time | None

    @classmethod
    def of(cls, change: SwitchChange) -> SwitchesResponse:
        """Returns the switches after ``change`` as the API sends them."""
        return cls.model_validate(
            _fields_of(change) | {"switches": SwitchSetResponse.of(change.switches)}
        )


class SwitchChangeResponse(ResponseModel):
    """A change of the switches."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _CHANGE_EXAMPLE
                | {
                    "before": asdict(LEVELS["normal"]) | {"stopped_sales": ["9400001"]},
                    "after": _SWITCHES_EXAMPLE,
                }
            ]
        }
    )

    version: int
    level: Annotated[LevelName | None, Field(description="Null if no level has these switches.")]
    before: SwitchSetResponse
    after: SwitchSetResponse
    reason: str
    changed_by: Annotated[str, Field(description="User id of the operator.")]
    changed_at: Time

    @classmethod
    def of(cls, listed: ListedChange) -> SwitchChangeResponse:
        """Returns ``listed`` as the API sends it."""
        before, after = (
            SwitchSetResponse.of(listed.before),
            SwitchSetResponse.of(listed.change.switches),
        )
        return cls.model_validate(_fields_of(listed.change) | {"before": before, "after": after})


def _fields_of(change: SwitchChange) -> dict[str, Any]:
    """Return what both responses have; nulls before the first change."""
    is_made = change.version > 0
    return {
        "version": change.version,
        "level": level_of(change.switches),
        "reason": change.reason if is_made else None,
        "changed_by": str(change.changed_by) if is_made else None,
        "changed_at": from_us(change.changed_us) if is_made else None,
    }
