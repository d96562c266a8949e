"""Importing users, posts and comments: each once, exact beside live traffic, without unread
counters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.paths import CommandError
from ops import history, records, sorted_records
from ops.records import RecordReport, import_records
from plaza.core.event_log import mysql_events, read_events
from plaza.core.event_log.model import EventOffset
from plaza.infra.mysql import mysql
from plaza.people.auth.request_erasure import erase_now
from plaza.people.users import sign_up
from plaza.social.content import import_texts
from tests.support.audits import Audit
from tests.support.content_api import ask, comment, post
from tests.support.failures import Killed
from tests.support.plaza import World

AT = "2020-01-01T00:00:00Z"
USERS = [
    {"id": 12, "nickname": "ann", "created_at": AT, "issuer": "my-app", "subject": "ann"},
    {"id": 13, "nickname": "bob", "created_at": AT},
]
POSTS = [
    {"id": 7, "author_id": 12, "created_at": AT, "title": "Hello", "body": "First"},
    {"id": 8, "author_id": 12, "created_at": AT, "title": "Again", "body": "Second"},
    {"id": 9, "author_id": 13, "created_at": AT, "title": "Mine", "body": "Third"},
]
COMMENTS = [
    {"id": 21, "post_id": 7, "author_id": 13, "created_at": AT, "body": "Nice"},
    {"id": 22, "post_id": 7, "author_id": 12, "created_at": AT, "body": "Thanks"},
    {"id": 23, "post_id": 9, "author_id": 12, "created_at": AT, "body": "Good"},
]


def store(tmp_path: Path, what: str, rows: list[dict[str, Any]], **options: Any) -> RecordReport:
    file = tmp_path / f"{what}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return import_records(file, what, tmp_path / "imports", **options)


def store_all(tmp_path: Path) -> list[RecordReport]:
    kinds = (("users", USERS), ("posts", POSTS), ("comments", COMMENTS))
    return [store(tmp_path, what, rows) for what, rows in kinds]


def test_records_are_stored_once_with_the_counts_of_the_source(
    plaza: World, audit: Audit, tmp_path: Path
) -> None:
    for _ in range(2):
        reports = store_all(tmp_path)
        assert [(r.progress.stored, r.progress.bad, r.groups) for r in reports] == [
            *((2, 0, 2), (3, 0, 2), (3, 0, 2)),
        ]
        assert [report.differing for report in reports] == [[], [], []]
    assert audit().clean
    assert list((tmp_path / "imports").iterdir()) == []
    shown = ask("GET", "/posts/7", user=13)
    assert (shown.body["title"], shown.body["comments"]) == ("Hello", 2)
    assert shown.body["created_at"].startswith("2020-01-01")
    known = sign_up.find_identity("my-app", "ann")
    assert known is not None
    assert known.id == 12


def test_an_import_notifies_no_unread_and_is_no_event(
    plaza: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_events, "MIN_HEAD_AGE_S", 0)
    begin = EventOffset(*read_events.find_head(), 2**40)
    store_all(tmp_path)
    plaza.queues.drain()
    assert mysql.fetch_all("SELECT COUNT(*) FROM notification_group") == [(0,)]
    assert read_events.read_page(begin, 100).events == []
    assert plaza.queues.messages["fanouts"] == []


def test_live_traffic_beside_an_import_stays_right(
    plaza: World, audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_all(tmp_path)
    own = post(12)
    comment("7", 13)
    assert ask("DELETE", "/comments/22", user=12).status == 204
    monkeypatch.setattr(records, "LINES_PER_BATCH", 1)
    before = import_texts.import_texts

    def write_between(texts: Any) -> dict[int, str]:
        comment("7", 12)
        return before(texts)

    monkeypatch.setattr(import_texts, "import_texts", write_between)
    report = store(tmp_path, "comments", [*COMMENTS, {**COMMENTS[0], "id": 24}])
    plaza.queues.drain()
    assert audit().clean
    assert ask("GET", "/posts/7", user=13).body["comments"] == 2 + 1 - 1 + 4 + 1
    assert [tuple(count) for count in report.differing] == [(7, 3, 7)]
    assert ask("GET", f"/posts/{own}", user=13).status == 200


@pytest.mark.parametrize("batches", [0, 1, 2])
def test_an_interrupted_import_continues(
    plaza: World, audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    monkeypatch.setattr(records, "LINES_PER_BATCH", 1)
    store(tmp_path, "users", USERS)
    file = tmp_path / "posts.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in POSTS))
    before, calls = import_texts.import_texts, []

    def kill(texts: Any) -> dict[int, str]:
        result = before(texts)
        calls.append(texts)
        if len(calls) > batches:
            raise Killed
        return result

    with monkeypatch.context() as patch:
        patch.setattr(import_texts, "import_texts", kill)
        with pytest.raises(Killed):
            import_records(file, "posts", tmp_path / "imports")
    report = import_records(file, "posts", tmp_path / "imports")
    assert report.resumed_after == batches
    assert (report.groups, report.differing) == (2, [])
    assert audit().clean


def test_bad_lines_name_their_line_and_nothing_is_stored(plaza: World, tmp_path: Path) -> None:
    store(tmp_path, "users", USERS)
    bad: list[dict[str, Any]] = [
        {**POSTS[0], "id": 2**60},
        {**POSTS[0], "body": ""},
        {**POSTS[0], "created_at": "soon"},
        {"id": 5},
    ]
    with pytest.raises(CommandError) as error:
        store(tmp_path, "posts", [POSTS[0], *bad])
    assert [line.split(":")[0].strip() for line in str(error.value).splitlines()[1:]] == [
        *("line 2", "line 3", "line 4", "line 5"),
    ]
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(0,)]
    report = store(tmp_path, "posts", [POSTS[0], *bad], skip_bad_lines=True)
    assert (report.progress.stored, report.progress.bad) == (1, 4)


@pytest.mark.parametrize("lines_per_batch", [1, 500])
@pytest.mark.parametrize("what", ["users", "posts", "comments"])
def test_no_time_is_in_the_future(
    plaza: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, lines_per_batch: int
) -> None:
    """A post of 2999 would be the first of its author, above every cursor, until then."""
    monkeypatch.setattr(records, "LINES_PER_BATCH", lines_per_batch)
    [row, *_] = {"users": USERS, "posts": POSTS, "comments": COMMENTS}[what]
    with pytest.raises(CommandError, match="line 1: created_at is '2999-01-01', in the future"):
        store(tmp_path, what, [{**row, "created_at": "2999-01-01"}])


@pytest.mark.parametrize("lines_per_batch", [1, 2, 500])
@pytest.mark.parametrize("run_records", [1, 2, 1_000])
def test_the_first_of_two_records_with_one_name_is_stored(
    plaza: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines_per_batch: int,
    run_records: int,
) -> None:
    monkeypatch.setattr(records, "LINES_PER_BATCH", lines_per_batch)
    monkeypatch.setattr(sorted_records, "RUN_RECORDS", run_records)
    users = [*USERS, {**USERS[0], "id": 14}, {**USERS[1], "nickname": "bobby"}]
    doubles = ["line 3: its identity is the one of line 1", "line 4: its id is the one of line 2"]
    with pytest.raises(CommandError) as error:
        store(tmp_path, "users", users)
    assert str(error.value).splitlines()[1:] == [f"  {text}" for text in doubles]
    report = store(tmp_path, "users", users, skip_bad_lines=True)
    assert (report.progress.stored, report.bad_lines, report.differing) == (2, doubles, [])
    posts = [*POSTS, {**POSTS[0], "title": "Another"}]
    report = store(tmp_path, "posts", posts, skip_bad_lines=True)
    assert report.bad_lines == ["line 4: its id is the one of line 1"]
    assert ask("GET", "/posts/7", user=13).body["title"] == "Hello"


def test_an_id_or_a_user_that_is_taken_is_left_out(plaza: World, tmp_path: Path) -> None:
    store_all(tmp_path)
    report = store(tmp_path, "posts", [{**POSTS[0], "author_id": 13}])
    assert report.bad_lines == ["line 1: its id is the one of another post"]
    report = store(tmp_path, "users", [{**USERS[0], "subject": "anna"}])
    assert report.bad_lines == ["line 1: it has another identity"]


@pytest.mark.parametrize(
    ("issuer", "subject"),
    [
        *(
            ("my-app", subject)
            for subject in ("ann ", " ann", "a\0", "a\t", "", "\u00e4", "a" * 256)
        ),
        *((issuer, "ann") for issuer in ("my-app ", "my app", "my|app", "", "a" * 201, 7)),
    ],
)
def test_an_identity_that_cannot_sign_in_is_refused(
    plaza: World, tmp_path: Path, issuer: object, subject: str
) -> None:
    with pytest.raises(CommandError, match=r"line 1: the (issuer|subject) must be"):
        store(tmp_path, "users", [{**USERS[0], "issuer": issuer, "subject": subject}])


def test_an_erased_user_is_not_imported_again(plaza: World, audit: Audit, tmp_path: Path) -> None:
    store_all(tmp_path)
    erase_now(12)
    mysql.write("UPDATE erasure SET closed_at = NOW(6)")
    assert [report.bad_lines for report in store_all(tmp_path)] == [
        ["line 1: it was erased"],
        ["line 1: user 12 was erased", "line 2: user 12 was erased"],
        ["line 2: user 12 was erased", "line 3: user 12 was erased"],
    ]
    assert ask("GET", "/users/12", user=13).status == 404
    assert sign_up.find_identity("my-app", "ann") is None


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"[" * 100_000, "nested too deep"),
        (b"{" + b" " * (1 << 20) + b"}", "longer than 1,048,576 bytes"),
        ('{"id": 1, "é": 1}'.encode("latin-1"), "not UTF-8 from byte 12 of the line on"),
        ('{"id": 1}'.encode("utf-16"), "not UTF-8 from byte 1 of the line on"),
        (b'{"id": 1\0}', "a NUL character is not text"),
        (b'{"id": 1, "id": 1}', "a name occurs twice in an object"),
        (b'{"id": Infinity}', "not JSON: Infinity"),
        (b"[1]", "not an object of JSON"),
        (b'{"id": 1', "not JSON: "),
        (json.dumps({**USERS[0], "nickname": "\ud800"}).encode(), "lone surrogate"),
    ],
)
def test_a_hostile_line_is_refused_by_its_number(
    plaza: World, tmp_path: Path, line: bytes, text: str
) -> None:
    file = tmp_path / "users.jsonl"
    good = json.dumps(USERS[1]).encode()
    file.write_bytes(b"\xef\xbb\xbf" + good + b"\r\n\r\n" + line + b"\r\n")
    with pytest.raises(CommandError, match=f"line 3: .*{text}"):
        import_records(file, "users", tmp_path / "imports")
    report = import_records(file, "users", tmp_path / "imports", skip_bad_lines=True)
    progress = report.progress
    assert (report.lines, progress.stored, progress.empty, progress.bad) == (3, 1, 1, 1)


def test_records_of_what_does_not_exist_are_left_out(plaza: World, tmp_path: Path) -> None:
    store_all(tmp_path)
    lost = [{**COMMENTS[0], "id": 31, "post_id": 99}, {**COMMENTS[0], "id": 32, "author_id": 99}]
    report = store(tmp_path, "comments", lost)
    assert report.bad_lines == ["line 1: its post does not exist", "line 2: user 99 does not exist"]
    taken = [{"id": 14, "nickname": "cy", "created_at": AT, "issuer": "my-app", "subject": "ann"}]
    report = store(tmp_path, "users", taken)
    assert report.bad_lines == ["line 1: its identity belongs to another user"]
    assert [tuple(count) for count in report.differing] == [(14, 1, 0)]


TARGETS = [
    {"type": "article", "id": "8f3a", "owner": "my-app|ann", "url": "https://app.example/8f3a"},
    {"type": "article", "id": "8f3b", "owner": "13"},
    {"type": "clip", "id": "7"},
]


def test_targets_of_the_app_are_stored_once_with_their_owners(
    plaza: World, audit: Audit, tmp_path: Path
) -> None:
    store(tmp_path, "users", USERS)
    for _ in range(2):
        report = store(tmp_path, "targets", TARGETS)
        assert (report.progress.stored, report.progress.bad, report.differing) == (3, 0, [])
    assert mysql.fetch_all(
        "SELECT type, external_id, owner_id, url FROM external_target ORDER BY type, external_id"
    ) == [
        ("article", "8f3a", 12, "https://app.example/8f3a"),
        ("article", "8f3b", 13, None),
        ("clip", "7", None, None),
    ]
    likes = tmp_path / "likes.csv"
    likes.write_text(f"user_id,article_id,created_at\n12,8f3a,{AT}\n13,8f3a,{AT}\n13,8f3b,{AT}\n")
    clips = tmp_path / "clips.csv"
    clips.write_text(f"user_id,clip_id,created_at\n12,7,{AT}\n12,8,{AT}\n")
    for file, target in ((likes, "article"), (clips, "clip")):
        layout = history.Layout("like", target, id_column=f"{target}_id")
        imported = history.import_file(file, layout, tmp_path / "imports")
        assert (imported.progress.bad, imported.differing) == (0, [])
    assert audit().differences == []
    _, page = ask_totals("article:8f3a,clip:8,article:8f3b")
    assert [item["likes"] for item in page["items"]] == [2, 1, 1]


def ask_totals(of: str) -> tuple[int, Any]:
    reply = ask("GET", f"/totals?of={of}", user=None, folder="api/totals")
    return reply.status, reply.body


def test_a_target_that_is_taken_or_wrong_is_left_out(plaza: World, tmp_path: Path) -> None:
    store(tmp_path, "users", USERS)
    store(tmp_path, "targets", TARGETS[:1])
    rows = [
        {"type": "article", "id": "8f3a", "owner": "13"},
        {"type": "article", "id": "8f3c", "owner": "99"},
        {"type": "post", "id": "7"},
        {"type": "clip", "id": "a"},
        {"type": "article", "id": "8f3d"},
        {"type": "article", "id": "8f3d"},
    ]
    report = store(tmp_path, "targets", rows, skip_bad_lines=True)
    assert (report.progress.stored, report.progress.bad) == (1, 5)
    assert any("owner-fixed" in line for line in report.bad_lines)
    assert any("user 99 does not exist" in line for line in report.bad_lines)


def test_likes_of_what_servers_make_are_refused_by_its_id(plaza: World, tmp_path: Path) -> None:
    store(tmp_path, "users", USERS)
    likes = tmp_path / "likes.csv"
    likes.write_text(f"user_id,article_id,created_at\n12,8f3a,{AT}\n12,-,{AT}\n")
    layout = history.Layout("like", "article", id_column="article_id")
    with pytest.raises(CommandError, match="article_id"):
        history.import_file(likes, layout, tmp_path / "imports")
