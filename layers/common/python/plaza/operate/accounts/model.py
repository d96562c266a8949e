"""Cursors of exports. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.codec import Codec


class ExportCursor(NamedTuple):
    """A cursor in an export: the name of a section in cursors, and the key of a row in it, empty
    before the first row."""

    section: str
    key: tuple[str, ...]


def _parse_cursor(text: str) -> ExportCursor:
    section, *key = text.split(" ")
    return ExportCursor(section, tuple(key))


EXPORT_CURSORS: Codec[ExportCursor] = Codec(
    "export_positions",
    lambda cursor: " ".join([cursor.section, *cursor.key]),
    _parse_cursor,
)
