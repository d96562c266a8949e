"""API models of posts, comments and reviews."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from plaza.content.model import ContentView, Draft
from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.infra.sql import from_us
from plaza.infra.texts import HTTPS_URL, LINE, TEXT, check_line, check_text
from plaza.users.schemas import UserCard

PostKind = Literal["note", "blog"]


Title = Annotated[
    str,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": LINE}),
    AfterValidator(check_line),
]
_Body = Annotated[
    str, Field(min_length=1, json_schema_extra={"pattern": TEXT}), AfterValidator(check_text)
]
PostBody = Annotated[_Body, Field(max_length=10_000)]
ShortBody = Annotated[_Body, Field(max_length=2_000)]
Image = Annotated[str, Field(max_length=512, pattern=HTTPS_URL, description="An https URL.")]


class PostRequest(RequestModel):
    """A post: a short note or a blog article."""

    kind: PostKind
    title: Title
    body: PostBody
    images: list[Image] = Field(default_factory=list, max_length=9)

    def to_draft(self, author_id: int) -> Draft:
        return Draft(
            type="post",
            author_id=author_id,
            kind=self.kind,
            title=self.title,
            body=self.body,
            images=tuple(self.images),
        )


class CommentRequest(RequestModel):
    """A comment on a post."""

    body: ShortBody

    def to_draft(self, author_id: int, post_id: int) -> Draft:
        return Draft(type="comment", author_id=author_id, parent_id=post_id, body=self.body)


class ReviewRequest(RequestModel):
    """A review of a shop."""

    score: Annotated[int, Field(ge=1, le=5), ACCEPT_INTEGRAL_FLOAT]
    body: ShortBody

    def to_draft(self, author_id: int, shop_id: int) -> Draft:
        return Draft(
            type="review",
            author_id=author_id,
            parent_id=shop_id,
            body=self.body,
            score=self.score,
        )


class PostViewerState(ResponseModel):
    """The caller's reactions to a post."""

    liked: bool
    collected: bool


class TextViewerState(ResponseModel):
    """The caller's reaction to a comment or a review."""

    liked: bool


class Post(ResponseModel):
    """A post. ``mine`` is null for anonymous callers. While Redis is unavailable, ``exact`` is
    false, ``viewers`` is null and the other counts lack what MySQL has not stored yet."""

    id: str
    kind: PostKind
    title: str
    body: str
    images: list[str]
    created_at: datetime
    author: UserCard
    likes: int
    collects: int
    comments: int
    viewers: int | None
    mine: PostViewerState | None
    exact: bool

    @classmethod
    def of(cls, view: ContentView, actor_id: int | None) -> Post:
        text = view.text
        mine = PostViewerState(liked=view.likes.viewer_state, collected=view.collects.viewer_state)
        return cls.model_validate(
            {
                "id": str(text.id),
                "kind": text.kind,
                "title": text.title,
                "body": text.body,
                "images": list(text.images),
                "created_at": from_us(text.created_us),
                "author": _author(view),
                "likes": view.likes.total,
                "collects": view.collects.total,
                "comments": view.comments,
                "viewers": view.viewers,
                "mine": None if actor_id is None else mine,
                "exact": view.exact,
            }
        )


class Comment(ResponseModel):
    """A comment. ``mine`` is null for anonymous callers; ``exact`` is as in ``Post``."""

    id: str
    post_id: str
    body: str
    created_at: datetime
    author: UserCard
    likes: int
    mine: TextViewerState | None
    exact: bool

    @classmethod
    def of(cls, view: ContentView, actor_id: int | None) -> Comment:
        text = view.text
        return cls(
            id=str(text.id),
            post_id=str(text.parent_id or 0),
            body=text.body,
            created_at=from_us(text.created_us),
            author=_author(view),
            likes=view.likes.total,
            mine=None if actor_id is None else TextViewerState(liked=view.likes.viewer_state),
            exact=view.exact,
        )


class Review(ResponseModel):
    """A review of a shop. ``mine`` is null for anonymous callers; ``exact`` is as in ``Post``."""

    id: str
    shop_id: str
    score: int
    body: str
    created_at: datetime
    author: UserCard
    likes: int
    mine: TextViewerState | None
    exact: bool

    @classmethod
    def of(cls, view: ContentView, actor_id: int | None) -> Review:
        text = view.text
        return cls(
            id=str(text.id),
            shop_id=str(text.parent_id or 0),
            score=text.score or 0,
            body=text.body,
            created_at=from_us(text.created_us),
            author=_author(view),
            likes=view.likes.total,
            mine=None if actor_id is None else TextViewerState(liked=view.likes.viewer_state),
            exact=view.exact,
        )


def _author(view: ContentView) -> UserCard:
    return UserCard.of(view.author) if view.author else UserCard.unknown(view.text.author_id)
