"""The client of S3: whole objects of one bucket, ``PLAZA_ARCHIVE_BUCKET``. It deletes nothing.

S3 verifies the SHA-256 sent with each object, and a listing includes all objects put before it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from plaza.infra.runtime.dependencies import Dependency, DependencyDown
from plaza.infra.runtime.process import Lazy
from plaza.infra.runtime.settings import BadSettings, settings

_MISSING = ("NoSuchKey", "404")


class ObjectsDown(DependencyDown):
    """S3 is unreachable or refuses a request."""


class ObjectMissing(Exception):
    """No object has this key."""


def _is_outage(error: BaseException) -> bool:
    """Return whether S3 failed; a missing object is a reply of a working S3."""
    return not (isinstance(error, ClientError) and error.response["Error"]["Code"] in _MISSING)


S3 = Dependency(
    name="S3", down=ObjectsDown, errors=lambda: (BotoCoreError, ClientError), is_outage=_is_outage
)


def client() -> Any:
    """Return the S3 client of this process; it tries three times, objects have some megabytes."""
    return _client.get()


def _make_client() -> Any:
    config = Config(
        connect_timeout=1,
        read_timeout=20,
        retries={"mode": "standard", "total_max_attempts": 3},
        s3={"addressing_style": "path"},
    )
    return botocore.session.get_session().create_client("s3", config=config)


_client: Lazy[Any] = Lazy(_make_client, close=lambda client: client.close())


def put(key: str, body: bytes, content_type: str) -> None:
    """Put an object, whole or not at all. One call. Raises ObjectsDown."""
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    S3.call(
        lambda: client().put_object(
            Bucket=_bucket(), Key=key, Body=body, ContentType=content_type, ChecksumSHA256=digest
        )
    )


def get(key: str) -> bytes:
    """Return the bytes of an object. One call. Raises ObjectMissing, ObjectsDown."""

    def read() -> bytes:
        body: bytes = client().get_object(Bucket=_bucket(), Key=key)["Body"].read()
        return body

    try:
        return S3.call(read)
    except ClientError:
        raise ObjectMissing(key) from None


def list_keys(prefix: str) -> Iterator[str]:
    """Yield all keys with ``prefix`` in order. One call for 1,000 keys. Raises ObjectsDown."""
    token: dict[str, str] = {}
    while True:
        page = S3.call(
            lambda token=token: client().list_objects_v2(  # type: ignore[misc]
                Bucket=_bucket(), Prefix=prefix, **token
            )
        )
        yield from (item["Key"] for item in page.get("Contents", ()))
        if not page.get("IsTruncated"):
            return
        token = {"ContinuationToken": page["NextContinuationToken"]}


def _bucket() -> str:
    bucket = settings().archive_bucket
    if bucket is None:
        raise BadSettings("PLAZA_ARCHIVE_BUCKET is not set")
    return bucket
