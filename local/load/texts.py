"""What people write: posts, comments and their own names; how it is sent, what must come of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from local.load.plans import Call, Copies, Request, draw_copies


@dataclass(frozen=True, slots=True)
class Rename:
    """A user takes a nickname."""

    user_id: int
    nickname: str
    copies: Copies = Copies.ONE

    @property
    def act(self) -> str:
        """In one word."""
        return "rename"

    def __str__(self) -> str:
        return f"nickname of user {self.user_id}"

    def write(self) -> Call:
        """What is sent."""
        return Call("PATCH", "/users/me", {"nickname": self.nickname})

    def expects(self) -> Mapping[str, Any]:
        """What the answer must hold."""
        return {"id": str(self.user_id), "nickname": self.nickname}


@dataclass(frozen=True, slots=True)
class Post:
    """A user writes a note; ``key`` is of this one alone."""

    user_id: int
    key: str
    title: str
    body: str
    copies: Copies = Copies.ONE

    @property
    def act(self) -> str:
        """In one word."""
        return "post"

    def __str__(self) -> str:
        return f"post {self.title!r} by user {self.user_id}"

    def write(self) -> Call:
        """What is sent."""
        question = {"kind": "note", "title": self.title, "body": self.body, "images": []}
        return Call("POST", "/posts", question, self.key)

    def expects(self) -> Mapping[str, Any]:
        """What the answer must hold."""
        return {"title": self.title, "body": self.body}


@dataclass(frozen=True, slots=True)
class Comment:
    """A user comments on a post; ``key`` is of this one alone."""

    user_id: int
    key: str
    post_id: int
    body: str
    copies: Copies = Copies.ONE

    @property
    def act(self) -> str:
        """In one word."""
        return "comment"

    def __str__(self) -> str:
        return f"comment on post {self.post_id} by user {self.user_id}"

    def write(self) -> Call:
        """What is sent."""
        return Call("POST", f"/posts/{self.post_id}/comments", {"body": self.body}, self.key)

    def expects(self) -> Mapping[str, Any]:
        """What the answer must hold."""
        return {"post_id": str(self.post_id), "body": self.body}


Text = Rename | Post | Comment


class Forecast(NamedTuple):
    """What is written says so in each answer, and is the same thing in all of them."""

    changes: bool = False  # of a reaction: none

    def find_wrong(
        self,
        request: Text,
        answers: Sequence[Mapping[str, Any]],
        sure: bool,  # noqa: ARG002 - a creation has a key: it is one, however often it was done
    ) -> list[str]:
        """What can't be true in the ``answers`` to the copies of ``request``."""
        wrong = [
            f"{request}: {name} is {answer.get(name)!r}"
            for answer in answers
            for name, expected in request.expects().items()
            if answer.get(name) != expected
        ]
        made = {str(answer.get("id")) for answer in answers}
        if len(made) > 1:
            wrong.append(f"{request}: made {len(made)} times: {', '.join(sorted(made))}")
        return wrong


def plan(texts: Iterable[Text], duplicates: float = 0.0, seed: int = 0) -> list[Text]:
    """The requests for ``texts``, in order; a share of them sent twice."""
    draw = draw_copies(duplicates, seed)
    return [replace(text, copies=draw()) for text in texts]


def count_posts(requests: Iterable[Request]) -> dict[int, int]:
    """How many posts each user writes."""
    posts: dict[int, int] = {}
    for request in requests:
        if isinstance(request, Post):
            posts[request.user_id] = posts.get(request.user_id, 0) + 1
    return posts


def count_comments(requests: Iterable[Request]) -> dict[int, int]:
    """How many comments each post gets."""
    comments: dict[int, int] = {}
    for request in requests:
        if isinstance(request, Comment):
            comments[request.post_id] = comments.get(request.post_id, 0) + 1
    return comments
