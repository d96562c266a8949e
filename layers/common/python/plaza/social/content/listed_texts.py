"""Posts, comments and reviews in lists of reactions, and the first users who like a post."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plaza.core.reactions import LIKE, Target
from plaza.core.reactions.kinds import CONTENT_TYPES
from plaza.infra.runtime.errors import Gone, Unavailable
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import error_fields, record
from plaza.people.users import Card, likers
from plaza.social.content import encoder, queries
from plaza.social.content.model import FIRST_LIKERS, count_fitting

if TYPE_CHECKING:
    from plaza.infra.http.schemas import ResponseModel
    from plaza.social.content import schemas
else:  # lists need no pydantic
    schemas = LazyModule("plaza.social.content.schemas")

TYPES = CONTENT_TYPES
ABSENT = encoder.ABSENT


def read_first_likers(post_id: int, actor_id: int | None) -> list[Card] | None:
    """Return the cards of the first users who like a post; None while the list is unavailable: that
    does not fail the post."""
    post = Target("post", post_id)
    try:
        listed, _ = likers.list_likers(LIKE, post, None, False, FIRST_LIKERS, actor_id)
    except (Gone, Unavailable) as error:  # gone: this process may cache the post for 1 s
        record("first_likers_unavailable", post_id=post_id, **error_fields(error))
        return None
    return [liker.card for liker in listed]


def require_visible(target: Target, reader_id: int | None) -> None:
    """Raise what ``queries.read`` does."""
    queries.read(target, reader_id)


def encode_texts(
    targets: Sequence[Target], reader_id: int
) -> tuple[dict[Target, str], Target | None]:
    """Return target -> JSON of ``ReactedTexts`` for what the reader may see, and the first target
    that does not fit into the response. Costs what ``queries.read_views`` does."""
    views = queries.read_views(targets, reader_id)
    shown = [target for target in targets if target in views]
    count = count_fitting([views[target].text for target in shown])
    encoded = {target: encoder.encode_reacted(views[target], reader_id) for target in shown[:count]}
    return encoded, shown[count] if count < len(shown) else None


def find_schema() -> type[ResponseModel]:
    """Return ``ReactedTexts``."""
    return schemas.ReactedTexts
