"""What an export has of a user's texts: those that are shown, then the deleted ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from plaza.infra.mysql.export_sections import Section
from plaza.infra.runtime.codec import TEXT_LIST


def _sections_of(text_type: str) -> Iterator[Section]:
    name, shown = f"{text_type}s", {"created_at": datetime, "content_id": int}
    for part, condition, order in (
        (name, "deleted_at IS NULL", shown),
        (f"{name}_deleted", "deleted_at IS NOT NULL", {"deleted_at": datetime, **shown}),
    ):
        yield Section(
            name=name,
            part=part,
            table="content",
            user="author_id",
            conditions=(f"content_type = '{text_type}'", condition),
            index="by_author",
            order=order,
            columns=(
                "content_id AS id", "parent_id", "kind", "title", "body", "images", "score",
                "order_id", "likes", "created_at", "deleted_at", "edited_at", "request_id",
            ),
            decoders={"images": lambda text: list(TEXT_LIST.decode(text))},
        )  # fmt: skip


SECTIONS = tuple(
    section for text_type in ("post", "comment", "review") for section in _sections_of(text_type)
)
