"""What clients send and get about what people write."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from plaza.content.content import Draft, Whole
from plaza.infra.http import AS_WHOLE, Answer, Question
from plaza.infra.sql import from_us
from plaza.infra.texts import HTTPS_URL, LINE, TEXT, check_line, check_text
from plaza.users.contract import UserCard

PostKind = Literal["note", "blog"]


Title = Annotated[
    str,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": LINE}),
    AfterValidator(check_line),
]
_SomeText = Annotated[
    str, Field(min_length=1, json_schema_extra={"pattern": TEXT}), AfterValidator(check_text)
]
PostBody = Annotated[_SomeText, Field(max_length=10_000)]
ShortBody = Annotated[_SomeText, Field(max_length=2_000)]
Image = Annotated[str, Field(max_length=512, pattern=HTTPS_URL, description="an https URL")]


class PostQuestion(Question):
    """A post: a short note or a blog."""

    kind: PostKind
    title: Title
    body: PostBody
    images: list[Image] = Field(default_factory=list, max_length=9)

    def draft(self, author_id: int) -> Draft:
        """What ``author_id`` wants to write."""
        return Draft(
            type="post",
            author_id=author_id,
            kind=self.kind,
            title=self.title,
            body=self.body,
            images=tuple(self.images),
        )


class CommentQuestion(Question):
    """A comment on a post."""

    body: ShortBody

    def draft(self, author_id: int, post_id: int) -> Draft:
        """What ``author_id`` wants to write."""
        return Draft(type="comment", author_id=author_id, parent_id=post_id, body=self.body)


class ReviewQuestion(Question):
    """A review of a shop."""

    score: Annotated[int, Field(ge=1, le=5), AS_WHOLE]
    body: ShortBody

    def draft(self, author_id: int, shop_id: int) -> Draft:
        """What ``author_id`` wants to write."""
        return Draft(
            type="review",
            author_id=author_id,
            parent_id=shop_id,
            body=self.body,
            score=self.score,
        )


class MineOfPost(Answer):
    """What I did to a post."""

    liked: bool
    collected: bool


class MineOfText(Answer):
    """What I did to a comment or a review."""

    liked: bool


class Post(Answer):
    """A post; ``mine`` is null for callers without a session. While Redis is away ``viewers`` is
    null and the other counts are a little behind: ``exact`` is false."""

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
    mine: MineOfPost | None
    exact: bool

    @classmethod
    def of(cls, whole: Whole, actor_id: int | None) -> Post:
        """What ``actor_id`` is told about it."""
        text = whole.text
        mine = MineOfPost(liked=whole.likes.mine, collected=whole.collects.mine)
        return cls.model_validate(
            {
                "id": str(text.id),
                "kind": text.kind,
                "title": text.title,
                "body": text.body,
                "images": list(text.images),
                "created_at": from_us(text.created_us),
                "author": _author(whole),
                "likes": whole.likes.total,
                "collects": whole.collects.total,
                "comments": whole.comments,
                "viewers": whole.viewers,
                "mine": None if actor_id is None else mine,
                "exact": whole.exact,
            }
        )


class Comment(Answer):
    """A comment; ``mine`` is null for callers without a session, ``exact`` as with ``Post``."""

    id: str
    post_id: str
    body: str
    created_at: datetime
    author: UserCard
    likes: int
    mine: MineOfText | None
    exact: bool

    @classmethod
    def of(cls, whole: Whole, actor_id: int | None) -> Comment:
        """What ``actor_id`` is told about it."""
        text = whole.text
        return cls(
            id=str(text.id),
            post_id=str(text.parent_id or 0),
            body=text.body,
            created_at=from_us(text.created_us),
            author=_author(whole),
            likes=whole.likes.total,
            mine=None if actor_id is None else MineOfText(liked=whole.likes.mine),
            exact=whole.exact,
        )


class Review(Answer):
    """A review of a shop; ``mine`` is null for callers without a session, ``exact`` as with
    ``Post``."""

    id: str
    shop_id: str
    score: int
    body: str
    created_at: datetime
    author: UserCard
    likes: int
    mine: MineOfText | None
    exact: bool

    @classmethod
    def of(cls, whole: Whole, actor_id: int | None) -> Review:
        """What ``actor_id`` is told about it."""
        text = whole.text
        return cls(
            id=str(text.id),
            shop_id=str(text.parent_id or 0),
            score=text.score or 0,
            body=text.body,
            created_at=from_us(text.created_us),
            author=_author(whole),
            likes=whole.likes.total,
            mine=None if actor_id is None else MineOfText(liked=whole.likes.mine),
            exact=whole.exact,
        )


def _author(whole: Whole) -> UserCard:
    return UserCard.of(whole.author) if whole.author else UserCard.unknown(whole.text.author_id)
