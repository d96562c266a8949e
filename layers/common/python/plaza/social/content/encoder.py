"""Posts, comments and reviews as the API sends them: JSON, without pydantic.

A page has up to a hundred texts. Their constant part and the cards of authors are encoded once and
kept in this process; counts and the caller's state are inserted for each response. ``schemas`` has
the fields, a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from json import JSONEncoder
from typing import Any

from plaza.core.reactions.model import Count
from plaza.infra.http import responses
from plaza.infra.mysql.sql import from_us
from plaza.people.users import Card
from plaza.social.content.model import ContentView, Text, cut_preview

_encode = JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_BOOL = {False: "false", True: "true"}


def encode_post(view: ContentView, actor_id: int | None) -> str:
    """Encode a ``Post``."""
    return f"{_encode_post(view.text)}{_encode_counts(view, actor_id)}}}"


def encode_post_details(
    view: ContentView, actor_id: int | None, likers: Iterable[Card] | None
) -> str:
    """Encode a ``PostDetails``."""
    cards = "null" if likers is None else f"[{','.join(map(_encode_card, likers))}]"
    return f'{_encode_post(view.text)}{_encode_counts(view, actor_id)},"likers":{cards}}}'


def encode_preview(view: ContentView, actor_id: int | None) -> str:
    """Encode a ``PostPreview``."""
    return f"{_encode_preview(view.text)}{_encode_counts(view, actor_id)}}}"


def encode_ranked(view: ContentView, actor_id: int | None, score: int) -> str:
    """Encode a ``RankedPostResponse``."""
    return f'{_encode_preview(view.text)}{_encode_counts(view, actor_id)},"score":{score}}}'


def encode_comment(view: ContentView, actor_id: int | None) -> str:
    """Encode a ``Comment``."""
    return f"{_encode_comment(view.text)}{_encode_counts(view, actor_id)}}}"


def encode_review(view: ContentView, actor_id: int | None) -> str:
    """Encode a ``Review``."""
    return f"{_encode_review(view.text)}{_encode_counts(view, actor_id)}}}"


def encode_reacted(view: ContentView, actor_id: int) -> str:
    """Encode the fields of ``ReactedTexts``."""
    return _reacted_fields(view.text.type, _ENCODERS[view.text.type](view, actor_id))


def _reacted_fields(of_type: str = "", encoded: str = "") -> str:
    return ",".join(f'"{name}":{encoded if name == of_type else "null"}' for name in _ENCODERS)


_ENCODERS = {"post": encode_preview, "comment": encode_comment, "review": encode_review}
ABSENT = _reacted_fields()
"""``ReactedTexts`` of a target without a text."""


def format_time(at_us: int) -> str:
    """Return microseconds since 1970 as the API sends them."""
    return responses.format_time(from_us(at_us))


def _encode_counts(view: ContentView, actor_id: int | None) -> str:
    """Return the part of a text that is not constant."""
    likes, collects, mine, of_post = view.counts["like"], view.counts["collect"], "null", ""
    if actor_id is not None:
        liked, collected = _BOOL[likes.viewer_state], _BOOL[collects.viewer_state]
        mine = f'{{"liked":{liked},"collected":{collected}}}'
    if view.text.type == "post":
        viewers = "null" if view.viewers is None else view.viewers
        of_post = f',"comments":{view.comments},"viewers":{viewers}'
    reactions = ",".join(
        [
            f'"{kind}":{{"total":{count.total},"at":{_encode_token(count)},"mine":'
            f"{'null' if actor_id is None else _BOOL[count.viewer_state]}}}"
            for kind, count in view.counts.items()
        ]
    )
    return (
        f',"author":{_encode_author(view)},"likes":{likes.total},"likes_at":{_encode_token(likes)}'
        f',"collects":{collects.total},"collects_at":{_encode_token(collects)}{of_post}'
        f',"mine":{mine},"reactions":{{{reactions}}},"exact":{_BOOL[view.exact]}'
    )


def _encode_token(count: Count) -> str:
    return "null" if count.at is None else f'"{count.at}"'


def _encode_author(view: ContentView) -> str:
    return _encode_card(view.author or Card.unknown(view.text.author_id))


@lru_cache(maxsize=2_000)
def _encode_card(card: Card) -> str:
    return _encode({"id": str(card.id), "nickname": card.nickname, "avatar": card.avatar})


@lru_cache(maxsize=100)  # it keeps whole bodies
def _encode_post(text: Text) -> str:
    return _encode_constant(text, {"kind": text.kind, "title": text.title, "body": text.body})


@lru_cache(maxsize=500)
def _encode_preview(text: Text) -> str:
    preview = cut_preview(text.body)
    fields = {"kind": text.kind, "title": text.title, "body_preview": preview}
    return _encode_constant(text, fields | {"truncated": preview != text.body})


@lru_cache(maxsize=500)
def _encode_comment(text: Text) -> str:
    return _encode_constant(text, {"post_id": str(text.parent_id or 0), "body": text.body})


@lru_cache(maxsize=500)
def _encode_review(text: Text) -> str:
    fields = {"shop_id": str(text.parent_id or 0), "score": text.score or 0, "title": text.title}
    fields |= {"body": text.body, "verified": text.order_id is not None}
    return _encode_constant(text, fields)


def _encode_constant(text: Text, fields: dict[str, Any]) -> str:
    """Encode the constant fields of a text, and leave the object open."""
    encoded = {"id": str(text.id)} | fields
    if text.type != "comment":
        encoded["images"] = text.images
    encoded["created_at"] = format_time(text.created_us)
    if text.type == "post":
        encoded["edited_at"] = text.edited_us and format_time(text.edited_us)
    encoded["hidden"] = text.hidden
    return _encode(encoded)[:-1]
