"""Schemas of the API: posts, comments and reviews."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from plaza.core.reactions.schemas import Reactions, make_example
from plaza.infra.http.schemas import (
    ACCEPT_INTEGRAL_FLOAT,
    ORDER_EXAMPLE,
    IdText,
    OrderToken,
    RequestModel,
    ResponseModel,
    Title,
)
from plaza.infra.http.texts import (
    HTTPS_URL,
    TEXT_RULE,
    VISIBLE,
    FieldError,
    check_text,
)
from plaza.people.users.schemas import UserCard
from plaza.social.content.model import FIRST_LIKERS, MAX_PREVIEW, Draft

SortOrder = Annotated[Literal["earliest", "latest"], Query(description="Order by creation time.")]

PostKind = Annotated[
    Literal["note", "blog"], Field(description="A `note` is short, a `blog` is long.")
]
_SomeText = Annotated[
    str,
    Field(min_length=1, description=TEXT_RULE, json_schema_extra={"pattern": VISIBLE}),
    AfterValidator(check_text),
]
PostBody = Annotated[_SomeText, Field(max_length=10_000)]
ShortBody = Annotated[_SomeText, Field(max_length=2_000)]
Image = Annotated[str, Field(max_length=512, pattern=HTTPS_URL, description="An https URL.")]
NineImages = Annotated[list[Image], Field(max_length=9, description="URLs of up to 9 images.")]
Images = Annotated[list[str], Field(description="URLs of the images.")]
CreatedAt = Annotated[datetime, Field(description="When it was created.")]
EditedAt = Annotated[
    datetime | None, Field(description="When its author changed it last; null for never.")
]
Hidden = Annotated[
    bool,
    Field(
        description=(
            "Hidden by a moderator, or with the account of its author. Only the author gets it."
        )
    ),
]
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
    "edited_at": None,
    "hidden": False,
    "author": _AUTHOR_EXAMPLE,
    "likes": 42,
    "likes_at": ORDER_EXAMPLE,
    "collects": 7,
    "collects_at": ORDER_EXAMPLE,
    "comments": 3,
    "viewers": 310,
    "mine": {"liked": True, "collected": False},
    "reactions": {
        "like": {"total": 42, "at": ORDER_EXAMPLE, "mine": True},
        "collect": {"total": 7, "at": ORDER_EXAMPLE, "mine": False},
    },
    "exact": True,
}
PREVIEW_EXAMPLE = {k: v for k, v in POST_EXAMPLE.items() if k != "body"} | {
    "body_preview": "First post",
    "truncated": False,
}
_UNLIKED = make_example(0)
_NEW_POST_EXAMPLE = POST_EXAMPLE | _UNLIKED | {"comments": 0, "viewers": 0}
_LIKED = make_example(4)
_COMMENT_EXAMPLE: dict[str, Any] = {
    "id": "9100001",
    "post_id": "9000001",
    "body": "Great photo",
    "created_at": "2026-11-22T12:05:00.123456Z",
    "hidden": False,
    "author": _AUTHOR_EXAMPLE,
    **_LIKED,
    "exact": True,
}
_REVIEW_EXAMPLE: dict[str, Any] = {
    "id": "9200001",
    "shop_id": "9000001",
    "score": 5,
    "title": "My morning",
    "body": "Good coffee",
    "verified": True,
    "images": ["https://images.example/3.jpg"],
    "created_at": "2026-11-22T12:10:00.123456Z",
    "hidden": False,
    "author": _AUTHOR_EXAMPLE,
    **_LIKED,
    "exact": True,
}


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
    images: NineImages = Field(default_factory=list)

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


class PostUpdateRequest(RequestModel):
    """The fields of a post to change: at least one."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "examples": [
                {
                    "title": "Hello again",
                    "body": "First post, corrected",
                    "images": ["https://images.example/2.jpg"],
                }
            ],
        }
    )

    # A field that is not sent is not in ``changes``; its default is never used.
    title: Title = Field(default_factory=str)
    body: PostBody = Field(default_factory=str)
    images: NineImages = Field(default_factory=list)

    @model_validator(mode="after")
    def _require_a_field(self) -> PostUpdateRequest:
        if not self.model_fields_set:
            raise FieldError("missing", "send title, body or images")
        return self

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that were sent, by attribute of ``Text``."""
        sent = self.model_dump(exclude_unset=True)
        return sent | ({"images": tuple(sent["images"])} if "images" in sent else {})


class CommentRequest(RequestModel):
    """A comment to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"body": "Great photo"}]})

    body: ShortBody

    def to_draft(self, author_id: int, post_id: int) -> Draft:
        """Returns the draft of ``author_id``."""
        return Draft(type="comment", author_id=author_id, parent_id=post_id, body=self.body)


class ReviewRequest(RequestModel):
    """A review to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "score": 5,
                    "title": "My morning",
                    "body": "Good coffee",
                    "images": ["https://images.example/3.jpg"],
                    "order_id": None,
                }
            ]
        }
    )

    score: Annotated[
        int, Field(ge=1, le=5, description="Stars: 1 is worst, 5 is best."), ACCEPT_INTEGRAL_FLOAT
    ]
    title: Annotated[Title | None, Field(description="A header; null for none.")] = None
    body: ShortBody
    images: NineImages = Field(default_factory=list)
    order_id: Annotated[
        IdText | None,
        Field(
            description=(
                "An order that the caller used in the shop: the review is verified. One review an "
                "order, and one without an order."
            )
        ),
    ] = None

    def to_draft(self, author_id: int, shop_id: int) -> Draft:
        """Returns the draft of ``author_id``."""
        return Draft(
            type="review",
            author_id=author_id,
            parent_id=shop_id,
            body=self.body,
            images=tuple(self.images),
            title=self.title,
            score=self.score,
            order_id=None if self.order_id is None else int(self.order_id),
        )


class ViewerState(ResponseModel):
    """What the caller did to a text."""

    liked: bool
    collected: bool


class _TextFields(ResponseModel):
    """The fields that each text has, with its reactions."""

    id: str
    created_at: CreatedAt
    hidden: Hidden
    author: UserCard
    likes: Likes
    likes_at: OrderToken
    collects: Annotated[int, Field(description="Number of collects.")]
    collects_at: OrderToken
    mine: Annotated[
        ViewerState | None, Field(description="The caller's state; null without a session.")
    ]
    reactions: Reactions
    exact: Exact


class _AnyPost(_TextFields):
    """The fields of a post without its text."""

    kind: PostKind
    title: str
    images: Images
    edited_at: EditedAt
    comments: Annotated[int, Field(description="Number of comments.")]
    viewers: Annotated[
        int | None,
        Field(description="Estimated number of viewers; null while Redis is unavailable."),
    ]


class Post(_AnyPost):
    """A post."""

    model_config = ConfigDict(json_schema_extra={"examples": [POST_EXAMPLE, _NEW_POST_EXAMPLE]})

    body: str


class PostPreview(_AnyPost):
    """A post in a list, with the beginning of its text. `GET /posts/{post_id}` has all of it."""

    model_config = ConfigDict(json_schema_extra={"examples": [PREVIEW_EXAMPLE]})

    body_preview: Annotated[
        str,
        Field(
            description=(
                f"The text, or its first words: at most {MAX_PREVIEW} characters, without an "
                "ellipsis."
            )
        ),
    ]
    truncated: Annotated[bool, Field(description="Whether the text is longer than its preview.")]


class PostDetails(Post):
    """A post with the first users who like it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                POST_EXAMPLE | {"likers": [{"id": "31", "nickname": "grace", "avatar": None}]}
            ]
        }
    )

    likers: Annotated[
        list[UserCard] | None,
        Field(
            description=(
                f"The first {FIRST_LIKERS} users who like it, earliest like first; null while they "
                "cannot be read. A new like appears after a second or two."
            )
        ),
    ]


class Comment(_TextFields):
    """A comment on a post."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_COMMENT_EXAMPLE, _COMMENT_EXAMPLE | _UNLIKED]}
    )

    post_id: str
    body: str


class Review(_TextFields):
    """A review of a shop."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_REVIEW_EXAMPLE, _REVIEW_EXAMPLE | _UNLIKED]}
    )

    shop_id: str
    score: Annotated[int, Field(description="Stars, 1 to 5.")]
    title: Annotated[str | None, Field(description="Its header; null without one.")]
    body: str
    verified: Annotated[
        bool, Field(description="Whether it is about an order that its author used in the shop.")
    ]
    images: Images


class ReactedTexts(ResponseModel):
    """The fields of a `ReactionListItem` that have its text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"post": PREVIEW_EXAMPLE, "comment": None, "review": None}]}
    )

    post: Annotated[
        PostPreview | None,
        Field(
            description=(
                "The post, with `expand`; null without it, for another type, and for a post that "
                "was deleted or hidden."
            )
        ),
    ]
    comment: Annotated[
        Comment | None,
        Field(description="The comment, with `expand=target`; null as `post` may be."),
    ]
    review: Annotated[
        Review | None,
        Field(description="The review, with `expand=target`; null as `post` may be."),
    ]
