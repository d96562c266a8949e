"""Objects of archives in S3: gzipped JSON lines, named by their content.

Repeated, late and concurrent writes never replace an object with another, and a reader can tell
whether an object is what was written.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from plaza.infra.aws import objects
from plaza.infra.aws.objects import ObjectMissing

DIGEST_CHARS = 16  # hex digits of a SHA-256, in a name
_LEVEL = 6


class ArchiveCorrupt(Exception):
    """An object is missing or is not what was written; the message names it."""


class ArchivedLines(NamedTuple):
    """An object; ``sha256`` (hex) and ``bytes`` are of its compressed content."""

    key: str
    bytes: int
    sha256: str


def put_lines(prefix: str, lines: Iterable[str]) -> ArchivedLines:
    """Write lines as one object, ``<prefix>-<digest>.jsonl.gz``. One call. Raises ObjectsDown."""
    text = "".join(f"{line}\n" for line in lines)
    body = gzip.compress(text.encode(), _LEVEL, mtime=0)
    sha256 = hashlib.sha256(body).hexdigest()
    key = f"{prefix}-{sha256[:DIGEST_CHARS]}.jsonl.gz"
    objects.put(key, body, "application/gzip")
    return ArchivedLines(key, len(body), sha256)


def read_text(key: str, sha256: str, size: int | None = None) -> str:
    """Return the lines of an object whose SHA-256 begins with ``sha256``, of ``size`` bytes if it
    is given. One call. Raises ArchiveCorrupt, ObjectsDown."""
    try:
        body = objects.get(key)
    except ObjectMissing:
        raise ArchiveCorrupt(f"{key}: missing") from None
    if size is not None and len(body) != size:
        raise ArchiveCorrupt(f"{key}: {len(body)} bytes, not {size}")
    if not hashlib.sha256(body).hexdigest().startswith(sha256):
        raise ArchiveCorrupt(f"{key}: the content is not what was written")
    try:
        return gzip.decompress(body).decode()
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ArchiveCorrupt(f"{key}: {type(error).__name__}") from None
