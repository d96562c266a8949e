"""Objects with the real client, against an S3 in this process."""

from __future__ import annotations

from typing import Any

import pytest

from plaza.infra import objects
from plaza.infra.objects import ObjectMissing, ObjectsDown
from plaza.infra.settings import BadSettings
from tests.support.archives import BUCKET, s3
from tests.support.plaza import forget

__all__ = ["s3"]


def test_what_is_put_is_got_and_listed(s3: Any) -> None:
    objects.put("a/1", b"one", "text/plain")
    objects.put("a/2", b"", "text/plain")
    objects.put("b/1", b"other", "text/plain")
    assert (objects.get("a/1"), objects.get("a/2")) == (b"one", b"")
    assert list(objects.list_keys("a/")) == ["a/1", "a/2"]
    assert list(objects.list_keys("c/")) == []
    assert s3.head_object(Bucket=BUCKET, Key="a/1")["ContentType"] == "text/plain"


def test_a_long_list_is_whole(s3: Any) -> None:
    for number in range(1_001):
        s3.put_object(Bucket=BUCKET, Key=f"many/{number:04d}", Body=b"")
    assert list(objects.list_keys("many/")) == [f"many/{number:04d}" for number in range(1_001)]


def test_what_is_missing_is_no_outage(s3: Any) -> None:
    for _ in range(10):
        with pytest.raises(ObjectMissing):
            objects.get("nothing")
    objects.put("a", b"a", "text/plain")
    assert objects.get("a") == b"a"


def test_a_bucket_that_is_not_there_is_an_error_of_ours(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_ARCHIVE_BUCKET", "another")
    forget()
    with pytest.raises(ObjectsDown):
        objects.put("a", b"a", "text/plain")
    with pytest.raises(ObjectsDown):
        objects.get("a")
    with pytest.raises(ObjectsDown):
        list(objects.list_keys("a"))


def test_after_five_failures_it_is_left_alone_for_a_moment(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_ARCHIVE_BUCKET", "another")
    forget()
    for _ in range(5):
        with pytest.raises(ObjectsDown):
            objects.get("a")
    with pytest.raises(ObjectsDown, match="not asked"):
        objects.get("a")


def test_who_was_not_told_of_a_bucket_says_so(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAZA_ARCHIVE_BUCKET")
    forget()
    with pytest.raises(BadSettings, match="PLAZA_ARCHIVE_BUCKET"):
        objects.put("a", b"a", "text/plain")
