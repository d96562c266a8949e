"""Schemas of the API: large and hot keys of Redis, for admins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import ResponseModel, Time
from plaza.operate.keyspace.key_scan import HotKey, KeySize, ScanState, redact_key

_KEY = Field(description="The key; hashes of sessions and challenges are left out.")


class LargeKeyResponse(ResponseModel):
    """A key of Redis and its size."""

    key: Annotated[str, _KEY]
    type: Annotated[str, Field(description="`string`, `hash`, `zset`, `set` or `list`.")]
    bytes: Annotated[int, Field(description="Its memory, estimated by Redis.")]
    members: Annotated[int | None, Field(description="Its members; null for a string.")]
    oversized: Annotated[bool, Field(description="Whether it exceeds 1 MB or 10,000 members.")]
    expected: Annotated[bool, Field(description="Whether it is large by design.")]

    @classmethod
    def of(cls, size: KeySize) -> LargeKeyResponse:
        """Return ``size`` as the API sends it."""
        return cls(
            key=redact_key(size.key),
            type=size.type,
            bytes=size.bytes,
            members=None if size.type == "string" else size.length,
            oversized=size.is_oversized,
            expected=size.is_expected,
        )


class HotKeyResponse(ResponseModel):
    """A key of Redis and how often it is used."""

    key: Annotated[str, _KEY]
    commands_per_s: Annotated[
        float, Field(description="Estimated commands a second at its master.")
    ]
    from_memory_per_s: Annotated[
        float, Field(description="Estimated reads a second that processes answered from memory.")
    ]
    from_replicas_per_s: Annotated[
        float, Field(description="Estimated reads a second that replicas answered.")
    ]


class KeysResponse(ResponseModel):
    """The largest and the hottest keys of Redis."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "scanned_at": "2026-11-22T12:00:00.000000Z",
                    "scanned": 181000,
                    "oversized": 0,
                    "large": [
                        {
                            "key": "{42}:like:post:9000001:recent",
                            "type": "zset",
                            "bytes": 91000,
                            "members": 1000,
                            "oversized": False,
                            "expected": False,
                        }
                    ],
                    "hot": [
                        {
                            "key": "{42}:like:post:9000001:meta",
                            "commands_per_s": 310.5,
                            "from_memory_per_s": 5400.0,
                            "from_replicas_per_s": 1200.0,
                        }
                    ],
                }
            ]
        }
    )

    scanned_at: Annotated[
        Time | None, Field(description="End of the last complete scan; null before the first.")
    ]
    scanned: Annotated[int, Field(description="Keys that the scan measured.")]
    oversized: Annotated[int, Field(description="Keys that exceed 1 MB or 10,000 members.")]
    large: Annotated[
        list[LargeKeyResponse],
        Field(description="The oversized keys (at most 100) and the ten largest of each type."),
    ]
    hot: Annotated[
        list[HotKeyResponse],
        Field(description="Keys of most commands in the last five minutes, at most 20."),
    ]

    @classmethod
    def of(cls, report: ScanState | None, hot: Sequence[HotKey]) -> KeysResponse:
        """Return the findings as the API sends them, large keys in descending order."""
        state = report or ScanState(0.0)
        sizes = {
            *state.oversized,
            *(size for largest in state.biggest.values() for size in largest),
        }
        return cls(
            scanned_at=datetime.fromtimestamp(report.finished_s, UTC) if report else None,
            scanned=state.scanned,
            oversized=state.oversized_total,
            large=[LargeKeyResponse.of(size) for size in sorted(sizes, reverse=True)],
            hot=[
                HotKeyResponse(**hot_key._asdict() | {"key": redact_key(hot_key.key)})
                for hot_key in hot
            ],
        )
