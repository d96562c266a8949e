"""The client of S3, with an S3 in this process."""

from __future__ import annotations

from typing import Any

import pytest

from plaza.infra.aws import objects
from plaza.infra.aws.objects import ObjectMissing, ObjectsDown
from plaza.infra.runtime.settings import BadSettings
from tests.support.archives import BUCKET, s3
from tests.support.plaza import forget

__all__ = ["s3"]


def test_put_objects_are_returned_and_listed(s3: Any) -> None:
    objects.put("a/1", b"one", "text/plain")
    objects.put("a/2", b"", "text/plain")
    objects.put("b/1", b"other", "text/plain")
    assert (objects.get("a/1"), objects.get("a/2")) == (b"one", b"")
    assert list(objects.list_keys("a/")) == ["a/1", "a/2"]
    assert list(objects.list_keys("c/")) == []
    assert s3.head_object(Bucket=BUCKET, Key="a/1")["ContentType"] == "text/plain"


@pytest.mark.deep  # puts an object more than a page has
def test_a_listing_of_several_pages_is_complete(s3: Any) -> None:
    for number in range(1_001):
        s3.put_object(Bucket=BUCKET, Key=f"many/{number:04d}", Body=b"")
    assert list(objects.list_keys("many/")) == [f"many/{number:04d}" for number in range(1_001)]


def test_a_missing_object_is_not_an_outage(s3: Any) -> None:
    for _ in range(10):
        with pytest.raises(ObjectMissing):
            objects.get("nothing")
    objects.put("a", b"a", "text/plain")
    assert objects.get("a") == b"a"


def test_a_missing_bucket_is_objects_down(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAZA_ARCHIVE_BUCKET", "another")
    forget()
    with pytest.raises(ObjectsDown):
        objects.put("a", b"a", "text/plain")
    with pytest.raises(ObjectsDown):
        objects.get("a")
    with pytest.raises(ObjectsDown):
        list(objects.list_keys("a"))


def test_the_breaker_opens_after_five_failures_of_s3(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_ARCHIVE_BUCKET", "another")
    forget()
    for _ in range(5):
        with pytest.raises(ObjectsDown):
            objects.get("a")
    with pytest.raises(ObjectsDown, match="breaker is open"):
        objects.get("a")


def test_a_function_without_a_bucket_setting_raises(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAZA_ARCHIVE_BUCKET")
    forget()
    with pytest.raises(BadSettings, match="PLAZA_ARCHIVE_BUCKET"):
        objects.put("a", b"a", "text/plain")
