"""Each line of an imported file is stored, refused by its number, or empty: generated files of each
format and kind, in batches of any size, with a kill in between."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ops import history, records, sorted_records
from ops.history import Layout, import_file
from ops.import_progress import Progress
from ops.records import import_records
from plaza.infra.mysql import mysql
from tests.support.failures import Killed
from tests.support.plaza import World
from tests.support.stores import add_users

AT_S = 1_500_000_000
BASES = count(10_000_000, 1_000)  # each example has ids of its own
RUN = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


class Item(NamedTuple):
    """A generated line: ``row`` of a valid one, else the ``raw`` bytes of a bad or an empty one."""

    row: tuple[int, ...] | None
    raw: bytes = b""
    note: str = ""


class File(NamedTuple):
    """How lines become a file, and how the import is cut."""

    end: bytes
    has_bom: bool
    ends_with_newline: bool
    is_gzipped: bool
    lines_per_batch: int
    killed_after: int

    def write(self, path: Path, lines: Sequence[bytes]) -> None:
        content = b"\xef\xbb\xbf" * self.has_bom + self.end.join(lines)
        if self.ends_with_newline or not lines or not lines[-1]:
            content += self.end
        path.write_bytes(gzip.compress(content) if self.is_gzipped else content)


FILES = st.builds(
    File,
    st.sampled_from([b"\n", b"\r\n"]),
    *[st.booleans()] * 3,
    st.sampled_from([1, 2, 3, 500]),
    st.integers(0, 6),
)
BAD = st.sampled_from(
    [b"\xff\xfe\x00", b"caf\xe9", b"\0", b"x", b"1,2", b"1\t2", b"x" * (1 << 20) + b"y", b'"', b"'"]
)
BAD_JSON = st.sampled_from(
    [
        *(b"[" * 100_000, b'{"id":' * 50_000, b"[]", b"null", b"{}", b"NaN", b'"text"', b"1e999"),
        b'{"id": NaN}',
        b'{"id": 1, "id": 2}',
        b'{"id": ' + b"9" * 5_000 + b"}",
    ]
)
EMPTY = st.sampled_from([b"", b"   "])
NOTE = st.text(st.sampled_from("a\"',;\\\t \u00e9\U0001f363"), max_size=6)


def items(rows: st.SearchStrategy[tuple[int, ...]], bad: st.SearchStrategy[bytes]) -> Any:
    line = st.one_of(
        *[st.builds(lambda row, note: Item(row, note=note), rows, NOTE)] * 4,
        st.builds(lambda raw: Item(None, raw), bad),
    )
    return st.lists(line, max_size=12)


def run_import(
    work: Callable[[], Any], module: Any, file: File, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Import in batches of a size, killed once after some of them."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "LINES_PER_BATCH", file.lines_per_batch)
        patch.setattr(sorted_records, "RUN_RECORDS", 3)
        save, saved = Progress.save, Counter[str]()

        def save_and_kill(progress: Progress, to: Path) -> None:
            save(progress, to)
            saved["saves"] += 1
            if saved["saves"] == file.killed_after:
                raise Killed

        patch.setattr(Progress, "save", save_and_kill)
        try:
            return work()
        except Killed:
            return work()


def require_account(report: Any, path: Path, file: File, headers: int) -> None:
    content = path.read_bytes()
    content = gzip.decompress(content) if file.is_gzipped else content
    lines = content.count(b"\n") + (content != b"" and not content.endswith(b"\n"))
    progress = report.progress
    assert report.lines == lines == headers + progress.stored + progress.bad + progress.empty


@RUN
@given(
    lines=items(st.tuples(st.integers(1, 4), st.integers(0, 3)), st.one_of(BAD, BAD_JSON, EMPTY)),
    file=FILES,
)
def test_each_line_of_users_is_accounted_for(
    plaza: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[Item], file: File
) -> None:
    base, path = next(BASES), tmp_path / "users.jsonl"
    names: set[object] = set()
    stored: dict[int, str | None] = {}
    texts = []
    for item in lines:
        if item.row is None:
            texts.append(item.raw)
            continue
        user, subject = base + item.row[0], f"{base}-{item.row[1]}" if item.row[1] else None
        record = {"id": user, "nickname": f"a{item.note}b", "created_at": AT_S}
        texts.append(
            json.dumps(record | ({"issuer": "app", "subject": subject} if subject else {})).encode()
        )
        if "\t" in item.note:
            continue  # no nickname has a tab
        if not names & {user, subject}:
            stored[user] = subject
        names |= {user} | ({subject} if subject else set())
    file.write(path, texts)
    report = run_import(
        lambda: import_records(path, "users", tmp_path / "imports", skip_bad_lines=True),
        *(records, file, monkeypatch),
    )
    require_account(report, path, file, 0)
    rows = mysql.fetch_all(
        "SELECT id, subject FROM user LEFT JOIN user_identity ON user_id = id"
        " WHERE id BETWEEN %s AND %s",
        (base, base + 999),
    )
    assert dict(rows) == stored
    assert (report.progress.stored, report.differing) == (len(stored), [])


@RUN
@pytest.mark.parametrize("what", ["posts", "comments"])
@given(
    lines=items(
        st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2)),
        st.one_of(BAD, BAD_JSON, EMPTY),
    ),
    file=FILES,
)
def test_each_line_of_texts_is_accounted_for(
    plaza: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    lines: list[Item],
    file: File,
) -> None:
    """Given authors 1 and 2, posts 901 and 902, and lines of author 3 and to post 900."""
    base, path = next(BASES), tmp_path / f"{what}.jsonl"
    add_users(base + 1, base + 2)
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, kind, title, body)"
        " VALUES ('post', %s, %s, 'note', 'a', 'b'), ('post', %s, %s, 'note', 'a', 'b')",
        (base + 901, base + 1, base + 902, base + 1),
    )
    seen: set[int] = set()
    stored: dict[int, tuple[int, int | None]] = {}
    texts = []
    for item in lines:
        if item.row is None:
            texts.append(item.raw)
            continue
        text_id, author, post = item.row[0] + base, item.row[1] + base, item.row[2] + base + 900
        record: dict[str, Any] = {"id": text_id, "author_id": author, "created_at": AT_S}
        record |= {"post_id": post} if what == "comments" else {"title": "a"}
        texts.append(json.dumps(record | {"body": f"a{item.note}b"}).encode())
        is_new = text_id not in seen
        seen.add(text_id)
        exists = author != base + 3 and (what == "posts" or post != base + 900)
        if is_new and exists:
            stored[text_id] = (author, post if what == "comments" else None)
    file.write(path, texts)
    report = run_import(
        lambda: import_records(path, what, tmp_path / "imports", skip_bad_lines=True),
        *(records, file, monkeypatch),
    )
    require_account(report, path, file, 0)
    rows = mysql.fetch_all(
        "SELECT content_id, author_id, parent_id FROM content"
        " WHERE content_type = %s AND content_id BETWEEN %s AND %s",
        (what.removesuffix("s"), base, base + 899),
    )
    assert {text_id: (author, parent) for text_id, author, parent in rows} == stored
    assert report.progress.stored == len(stored)


@RUN
@pytest.mark.parametrize("form", ["csv", "tsv"])
@pytest.mark.parametrize("kind", ["like", "follow"])
@given(
    lines=items(
        st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(0, 1)),
        st.one_of(BAD, EMPTY),
    ),
    file=FILES,
)
def test_each_line_of_reactions_is_accounted_for(
    plaza: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    kind: str,
    lines: list[Item],
    file: File,
) -> None:
    """Given users 1 and 2 and lines of user 3; reactions to users, or to posts 1 and 2."""
    base, path = next(BASES), tmp_path / f"reactions.{form}"
    add_users(base + 1, base + 2)
    target = "user" if kind == "follow" else "post"
    if target == "post":
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id)"
            " VALUES ('post', %s, %s), ('post', %s, %s)",
            (base + 1, base + 1, base + 2, base + 1),
        )
    newest: dict[tuple[int, int], int] = {}
    texts = [(b"\t" if form == "tsv" else b",").join([b"note", b"who", b"what", b"at", b"on"])]
    stored, is_open = 0, False
    for item in lines:
        if item.row is None:
            text = item.raw
        else:
            who, of, at, on = item.row
            fields = [item.note, str(who + base), str(of + base), str(AT_S + at), str(on)]
            text = write_row(fields, form).encode()
        texts.append(text)
        quotes = 0 if form == "tsv" or len(text) > 1 << 20 else text.count(b'"')
        if is_open or item.row is None:
            if is_open or text == b'"':
                is_open ^= quotes % 2 == 1
            continue
        if who < 3 and of < 3 and (kind == "like" or who != of):
            stored += 1
            newest[who, of] = max(newest.get((who, of), 0), (AT_S + at) * 2 + 1 - on)
    file.write(path, texts)
    layout = Layout(kind, target, "who", "what", "at", "on")
    report = run_import(
        lambda: import_file(path, layout, tmp_path / "imports", skip_bad_lines=True),
        *(history, file, monkeypatch),
    )
    require_account(report, path, file, 1)
    rows = mysql.fetch_all(
        "SELECT actor_id, target_id, state FROM reaction WHERE target_type = %s AND kind = %s"
        " AND target_id BETWEEN %s AND %s",
        (target, kind, base, base + 999),
    )
    assert {(who - base, of - base): state for who, of, state in rows} == {
        pair: 1 - newest_state % 2 for pair, newest_state in newest.items()
    }
    assert (report.progress.stored, report.differing) == (stored, [])


def write_row(fields: Sequence[str], form: str) -> str:
    """Return a row as `mysql --batch` or a writer of CSV prints it."""
    if form == "tsv":
        return "\t".join(f.replace("\\", "\\\\").replace("\t", "\\t") for f in fields)
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue()
