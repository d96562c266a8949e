"""Texts: requests, impossible answers and comparison."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from local.load.requests import Call, Copies, Request, duplicate, predict
from local.load.scenario import add_up, compare_totals
from local.load.texts import (
    count_comments,
    count_posts,
    rename,
    write_comment,
    write_post,
)

POST = write_post(1, "k1", "A day", "It rained.")
COMMENT = write_comment(2, "k2", 7, "Thanks.")
WRITTEN = {"id": "55", "title": "A day", "body": "It rained."}


def test_creation_is_sent_with_its_key() -> None:
    payload = {"kind": "note", "title": "A day", "body": "It rained.", "images": []}
    assert POST.call == Call("POST", "/posts", payload, "k1")
    assert COMMENT.call == Call("POST", "/posts/7/comments", {"body": "Thanks."}, "k2")
    assert rename(3, "Ada").call == Call("PATCH", "/users/me", {"nickname": "Ada"})


def test_some_are_sent_twice() -> None:
    requests = duplicate([POST, COMMENT] * 50, 1, seed=0)
    assert {request.copies for request in requests} == {Copies.AT_ONCE, Copies.IN_A_ROW}
    assert [request.user_id for request in requests] == [1, 2] * 50


def find_wrong(request: Request, answers: list[Mapping[str, Any]], certain: bool) -> list[str]:
    [expectation], after = predict([request], set())
    assert (expectation.changes, after) == (False, set())
    return expectation.find_wrong(request, answers, certain)


def test_answer_must_show_the_written_values() -> None:
    assert find_wrong(POST, [WRITTEN, WRITTEN], True) == []
    assert find_wrong(POST, [{**WRITTEN, "title": "A night"}], True) == [
        "post 'A day' by user 1: title is 'A night'"
    ]
    assert find_wrong(rename(3, "Ada"), [{"id": "4", "nickname": "Ada"}], True) == [
        "nickname of user 3: id is '4'"
    ]
    assert find_wrong(COMMENT, [{"id": "5", "post_id": "7"}], True) == [
        "comment on post 7 by user 2: body is None"
    ]


def test_two_creations_under_one_key_are_found() -> None:
    wrong = find_wrong(POST, [WRITTEN, {**WRITTEN, "id": "56"}], False)
    assert wrong == ["post 'A day' by user 1: made 2 times: 55, 56"]


def test_posts_are_counted_by_user_and_comments_by_post() -> None:
    requests = [POST, POST, COMMENT, rename(3, "Ada")]
    assert count_posts(requests) == {1: 2}
    assert count_comments(requests) == {7: 1}


def test_rows_and_api_are_compared_with_the_written_texts() -> None:
    written, rows = Counter({1: 2, 3: 1}), Counter({1: 2, 5: 9})
    assert compare_totals("user", "posts", {1: 2}, written.__getitem__) == []
    assert compare_totals("user", "posts", {1: 3, 3: 1}, written.__getitem__) == [
        "user 1 has 3 posts by the API, 2 by the file"
    ]
    assert compare_totals("user", "posts", {3: 0}, written.__getitem__, "in the rows") == [
        "user 3 has 0 posts in the rows, 1 by the file"
    ]
    assert add_up({1: 3, 3: 0}, written.__getitem__, rows.__getitem__) == (3, 2, 3)
