"""Schemas of the API: posts, comments and reviews."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from plaza.content.model import ContentView, Draft
from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.infra.sql import from_us
from plaza.infra.texts import HTTPS_URL, LINE_RULE, TEXT_RULE, VISIBLE, check_line, check_text
from plaza.users.schemas import UserCard

PostKind = Annotated[
    Literal["note", "blog"], Field(description="A `note` is short, a `blog` is long.")
]
Title = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description=LINE_RULE,
        json_schema_extra={"pattern": VISIBLE},
    ),
    AfterValidator(check_line),
]
_SomeText = Annotated[
    str,
    Field(min_length=1, description=TEXT_RULE, json_schema_extra={"pattern": VISIBLE}),
    AfterValidator(check_text),
]
PostBody = Annotated[_SomeText, Field(max_length=10_000)]
ShortBody = Annotated[_SomeText, Field(max_length=2_000)]
Image = Annotated[str, Field(max_length=512, pattern=HTTPS_URL, description="An https URL.")]
Images = Annotated[list[str], Field(description="URLs of the images.")]
CreatedAt = Annotated[datetime, Field(description="When it was created.")]
Likes = Annotated[int, Field(description="Number of likes.")]
Exact = Annotated[
    bool,
    Field(
        description=(
            "False while Redis is unavailable: counts and `mine` come from MySQL and may be a "
            "second or two behind."
        )
    ),
]

_AUTHOR_EXAMPLE = {"id": "7", "nickname": "ada", "avatar": None}
POST_EXAMPLE: dict[str, Any] = {
    "id": "9000001",
    "kind": "note",
    "title": "Hello",
    "body": "First post",
    "images": ["https://images.example/1.jpg"],
    "created_at": "2026-11-22T12:00:00.123456Z",
    "author": _AUTHOR_EXAMPLE,
    "likes": 42,
    "collects": 7,
    "comments": 3,
    "viewers": 310,
    "mine": {"liked": True, "collected": False},
    "exact": True,
}
_NEW_POST_EXAMPLE = POST_EXAMPLE | {
    "likes": 0,
    "collects": 0,
    "comments": 0,
    "viewers": 0,
    "mine": {"liked": False, "collected": False},
}
_COMMENT_EXAMPLE: dict[str, Any] = {
    "id": "9100001",
    "post_id": "9000001",
    "body": "Great photo",
    "created_at": "2026-11-22T12:05:00.123456Z",
    "author": _AUTHOR_EXAMPLE,
    "likes": 4,
    "mine": {"liked": True},
    "exact": True,
}
_REVIEW_EXAMPLE: dict[str, Any] = {
    "id": "9200001",
    "shop_id": "9000001",
    "score": 5,
    "body": "Good coffee",
    "created_at": "2026-11-22T12:10:00.123456Z",
    "author": _AUTHOR_EXAMPLE,
    "likes": 4,
    "mine": {"liked": True},
    "exact": True,
}
_UNLIKED: dict[str, Any] = {"likes": 0, "mine": {"liked": False}}


class PostRequest(RequestModel):
    """A post to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "note",
                    "title": "Hello",
                    "body": "First post",
                    "images": ["https://images.example/1.jpg"],
                }
            ]
        }
    )

    kind: PostKind
    title: Title
    body: PostBody
    images: Annotated[list[Image], Field(max_length=9, description="URLs of up to 9 images.")] = (
        Field(default_factory=list)
    )

    def to_draft(self, author_id: int) -> Draft:
        """Returns the draft of ``author_id``."""
        return Draft(
            type="post",
            author_id=author_id,
            kind=self.kind,
            title=self.title,
            body=self.body,
            images=tuple(self.images),
        )


class CommentRequest(RequestModel):
    """A comment to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"body": "Great photo"}]})

    body: ShortBody

    def to_draft(self, author_id: int, post_id: int) -> Draft:
        """Returns the draft of ``author_id``."""
        return Draft(type="comment", author_id=author_id, parent_id=post_id, body=self.body)


class ReviewRequest(RequestModel):
    """A review to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"score": 5, "body": "Good coffee"}]})

    score: Annotated[
        int, Field(ge=1, le=5, description="Stars: 1 is worst, 5 is best."), ACCEPT_INTEGRAL_FLOAT
    ]
    body: ShortBody

    def to_draft(self, author_id: int, shop_id: int) -> Draft:
        """Returns the draft of ``author_id``."""
        return Draft(
            type="review",
            author_id=author_id,
            parent_id=shop_id,
            body=self.body,
            score=self.score,
        )


class PostViewerState(ResponseModel):
    """What the caller did to a post."""

    liked: bool
    collected: bool


class TextViewerState(ResponseModel):
    """What the caller did to a comment or a review."""

    liked: bool


class Post(ResponseModel):
    """A post."""

    model_config = ConfigDict(json_schema_extra={"examples": [POST_EXAMPLE, _NEW_POST_EXAMPLE]})

    id: str
    kind: PostKind
    title: str
    body: str
    images: Images
    created_at: CreatedAt
    author: UserCard
    likes: Likes
    collects: Annotated[int, Field(description="Number of collects.")]
    comments: Annotated[int, Field(description="Number of comments.")]
    viewers: Annotated[
        int | None,
        Field(description="Estimated number of viewers; null while Redis is unavailable."),
    ]
    mine: Annotated[
        PostViewerState | None, Field(description="The caller's state; null without a session.")
    ]
    exact: Exact

    @classmethod
    def of(cls, view: ContentView, actor_id: int | None) -> Post:
        """Returns ``view`` as the API sends it to ``actor_id``."""
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
    """A comment on a post."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_COMMENT_EXAMPLE, _COMMENT_EXAMPLE | _UNLIKED]}
    )

    id: str
    post_id: str
    body: str
    created_at: CreatedAt
    author: UserCard
    likes: Likes
    mine: Annotated[
        TextViewerState | None, Field(description="The caller's state; null without a session.")
    ]
    exact: Exact

    @classmethod
    def of(cls, view: ContentView, actor_id: int | None) -> Comment:
        """Returns ``view`` as the API sends it to ``actor_id``."""
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
    """A review of a shop."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_REVIEW_EXAMPLE, _REVIEW_EXAMPLE | _UNLIKED]}
    )

    id: str
    shop_id: str
    score: Annotated[int, Field(description="Stars, 1 to 5.")]
    body: str
    created_at: CreatedAt
    author: UserCard
    likes: Likes
    mine: Annotated[
        TextViewerState | None, Field(description="The caller's state; null without a session.")
    ]
    exact: Exact

    @classmethod
    def of(cls, view: ContentView, actor_id: int | None) -> Review:
        """Returns ``view`` as the API sends it to ``actor_id``."""
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
