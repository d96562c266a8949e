"""Requests as API Gateway sends them: ids, bodies, unknown parameters."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar

from plaza.infra.runtime.errors import BadInput, ChangedMeanwhile, NotFound

Event = dict[str, Any]
"""An event of API Gateway, payload format 2.0."""

JSON = "application/json"
MAX_BODY_BYTES = 64 * 1024
MAX_ID = 2**63 - 1
MAX_ERRORS = 20  # reported
ID_PATTERN = r"^[1-9][0-9]{0,18}$"
ID_DESCRIPTION = "Positive integer of at most 9223372036854775807, as a string."
PARAMETER_HEADERS = ("idempotency-key", "if-match", "x-visitor-id")
"""The headers that are parameters of routes."""
_UTF_8 = {"charset=utf-8", 'charset="utf-8"', "charset=utf8"}


class PathText(str):
    """A parameter of a path: a text of the form ``PATTERN``, which is read without pydantic."""

    PATTERN: ClassVar[str]
    DESCRIPTION: ClassVar[str]
    EXAMPLE: ClassVar[str | None] = None
    NOUN: ClassVar[str] = "an id"
    form: ClassVar[re.Pattern[str]]

    def __init_subclass__(cls) -> None:
        cls.form = re.compile(cls.PATTERN.removeprefix("^").removesuffix("$"), re.ASCII)

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        return {"type": "str", "pattern": cls.PATTERN}

    @classmethod
    def __get_pydantic_json_schema__(cls, *_: Any) -> dict[str, Any]:
        shown = {} if cls.EXAMPLE is None else {"examples": [cls.EXAMPLE]}
        form = {"type": "string", "pattern": cls.PATTERN, "description": cls.DESCRIPTION}
        return form | shown


class Id(PathText):
    """A positive integer of at most 19 digits."""

    PATTERN = ID_PATTERN
    DESCRIPTION = ID_DESCRIPTION


class InvalidRequest(BadInput):
    """Parameters or fields of the body are invalid: ``errors`` has all of them."""

    def __init__(self, errors: list[dict[str, Any]]) -> None:
        super().__init__(errors[0]["field"], errors[0]["detail"])
        self.errors = errors[:MAX_ERRORS]


def is_id(text: str) -> bool:
    """Return whether ``text`` is a positive integer of at most 19 digits."""
    return Id.form.fullmatch(text) is not None


def read_id(text: str, resource: str) -> int:
    """Return the id in a path. Raises NotFound if ``text`` is no id."""
    if not is_id(text) or int(text) > MAX_ID:
        raise NotFound(f"{text[:32]!r} is not the id of a {resource}.")
    return int(text)


def find_unknown_parameters(event: Event, known: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return an error for each parameter of the query that a route does not have."""
    names = (event.get("queryStringParameters") or {}).keys() - set(known)
    detail = "is unknown"  # as of a field of the body
    return [
        {"field": f"query.{name}", "code": "unknown", "detail": detail} for name in sorted(names)
    ]


def tag_version(version: int) -> str:
    """Return the ETag of a version of what its reader may change."""
    return f'"{version}"'


def tag_fields(*fields: object) -> str:
    """Return the ETag of what has no version: a hash of the fields that can be changed. Equal
    fields have one tag, also when they changed there and back."""
    return f'"{hashlib.sha256(repr(fields).encode()).hexdigest()[:32]}"'


def read_tags(if_match: str | None) -> frozenset[str] | None:
    """Return the tags of a header If-Match, None if it admits each version. A weak tag is among
    them and matches none (RFC 9110, 13.1.1)."""
    tags = frozenset(tag.strip() for tag in (if_match or "*").split(","))
    return None if "*" in tags else tags


def check_tag(tags: Collection[str] | None, stored: str, changed: str, resource: str) -> None:
    """Raise ChangedMeanwhile unless ``tags`` admit the ``stored`` version of a resource, or the
    ``changed`` one is the stored one: a repeat after a lost answer."""
    if tags is not None and stored not in tags and stored != changed:
        raise ChangedMeanwhile(f"The {resource} was changed since you read it. Read it again.")


def check_body(event: dict[str, Any]) -> None:
    """Raise BadInput for a body above 64 KiB, or with another Content-Type than JSON in UTF-8."""
    body = event.get("body")
    if not body:
        return
    size = len(body) * 3 // 4 if event.get("isBase64Encoded") else len(body.encode())
    if size > MAX_BODY_BYTES:
        detail = f"is larger than {MAX_BODY_BYTES} bytes"
        raise BadInput("body", detail, code="too-large", path="body")
    content_type, *parameters = (
        event.get("headers", {}).get("content-type", JSON).lower().split(";")
    )
    charsets = {text.strip() for text in parameters if text.strip().startswith("charset")}
    if content_type.strip() != JSON or not charsets <= _UTF_8:
        detail = f"is not {JSON} in UTF-8"
        path = "header.content-type"
        raise BadInput("content-type", detail, code="not-listed", path=path)


def fits(pattern: Sequence[str], segments: Sequence[str]) -> bool:
    """Return whether the segments of a path fit a pattern, whose segments may be ``{id}``."""
    return len(pattern) == len(segments) and all(
        part == segment or (part[:1] == "{" and segment != "")
        for part, segment in zip(pattern, segments, strict=True)
    )


def as_get(event: Event) -> Event:
    """Return a request of the route ``HEAD /posts/{post_id}`` as one of its GET, others as they
    are."""
    key: str = event["routeKey"]
    return {**event, "routeKey": f"GET {key[5:]}"} if key.startswith("HEAD ") else event
