"""Static pages of an environment: built files, in the bucket that its edge serves."""

import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cli.paths import ROOT

BUILT: Mapping[str, Path] = {
    "app": ROOT / "web" / "app" / "dist",
    "console": ROOT / "web" / "console" / "dist",
}
"""First part of the path -> the folder of its files, if it is built."""

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
# app-D1x9_k2Q.js: another content has another name. A word of eight letters is none.
HASHED = re.compile(r"-(?=[\w-]*[A-Z0-9_])[\w-]{8}\.\w+$")
KEPT, CHECKED = "public, max-age=31536000, immutable", "no-cache"


class Page(NamedTuple):
    """A file of a page, and how it is served."""

    key: str
    file: Path
    content_type: str
    cache_control: str


def list_pages(built: Mapping[str, Path] = BUILT) -> list[Page]:
    """Return all files, an index after what it loads."""
    return sorted(_read_pages(built), key=lambda page: (page.file.name == "index.html", page.key))


def upload_pages(
    pages: list[Page], bucket: str, distribution: str, s3: Any, cloudfront: Any
) -> None:
    """Upload ``pages``, then let CloudFront drop what it cached of them. One call a file.

    Files that are no longer built stay, because open pages may still load them.
    """
    for page in pages:
        s3.put_object(
            Bucket=bucket,
            Key=page.key,
            Body=page.file.read_bytes(),
            ContentType=page.content_type,
            CacheControl=page.cache_control,
        )
    if paths := sorted({f"/{page.key.partition('/')[0]}*" for page in pages}):
        cloudfront.create_invalidation(
            DistributionId=distribution,
            InvalidationBatch={
                "Paths": {"Quantity": len(paths), "Items": paths},
                "CallerReference": secrets.token_hex(8),
            },
        )


def _read_pages(built: Mapping[str, Path]) -> Iterator[Page]:
    for name, folder in built.items():
        for file in folder.rglob("*"):
            if file.is_file():
                key = f"{name}/{file.relative_to(folder).as_posix()}"
                cache_control = KEPT if HASHED.search(file.name) else CHECKED
                yield Page(key, file, TYPES[file.suffix], cache_control)
