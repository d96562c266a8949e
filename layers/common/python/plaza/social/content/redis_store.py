"""Texts in Redis. Hashes have the fields of ``infra.derived.cache``: version, value.

{<shard>}:<type>:<id>:text     hash    the text as JSON, or "deleted"
{<shard>}:<owner>:<list>       hash    the first page of a list: [[created_us, id], ...]
{<shard>}:post:<id>:viewers    string  HyperLogLog of viewers
{<shard>}:post:<id>:published  string  mark: the fan-out of the post was queued
{<shard>}:posts:unsent         zset    post -> seconds since 1970 at which SQS refused it; one key
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plaza.core.reactions import Target
from plaza.infra.derived import cache
from plaza.infra.derived.cache import NEVER_STALE, CachedValue, CacheEntry
from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Command
from plaza.infra.runtime.codec import DELETED, Deleted, list_codec
from plaza.social.content.model import DELETED_VERSION, TEXT, ListCursor, StoredText, Text
from plaza.social.shop_scores import totals

if TYPE_CHECKING:
    from plaza.core.reach import Visit

VIEWERS_TTL_S = 90 * 86_400
PUBLISHED_TTL_S = 86_400
UNSENT_KEY = key_of("posts", "unsent")
CURSORS = list_codec("list_cursors", ListCursor)


def text_key(target: Target) -> str:
    return key_of(str(target), "text")


def viewers_key(post_id: int) -> str:
    return key_of(f"post:{post_id}", "viewers")


def read_texts(targets: Iterable[Target]) -> dict[Target, Text | None]:
    """Return the cached texts, None for deleted ones. One round trip. Raises RedisDown."""
    listed = list(targets)
    values = cache.read_all([text_key(target) for target in listed], TEXT)
    return {
        t: text_of(cached)
        for t, cached in zip(listed, values, strict=True)
        if cached and cached.value
    }


def text_of(cached: CachedValue[Text | Deleted]) -> Text | None:
    """Return the cached text, None for a deleted one."""
    return cached.value if isinstance(cached.value, Text) else None


def entry_of(stored: StoredText) -> CacheEntry[Text | Deleted]:
    """Return the entry of a text. Deletions are cached too, with a higher version, so that a reader
    with an older snapshot cannot restore the text."""
    text, deleted = stored
    if deleted:
        return CacheEntry(DELETED_VERSION, DELETED)
    return CacheEntry(text.version, text)


def list_key(text_type: str, owner_id: int, latest: bool) -> str:
    """Return the key of the first page of a list; the owner is a user, a post or a shop."""
    owner = {"post": "user", "comment": "post", "review": "shop"}[text_type]
    return key_of(f"{owner}:{owner_id}", f"{text_type}s:{'latest' if latest else 'earliest'}")


def drop_lists(texts: Iterable[Text]) -> None:
    """Drop the first pages that ``texts`` enter or leave, and the totals of shops that reviews
    change. One round trip. Raises RedisDown."""
    owners = {
        (text.type, text.author_id if text.parent_id is None else text.parent_id) for text in texts
    }
    keys = [list_key(*owner, latest) for owner in sorted(owners) for latest in (True, False)]
    keys += [totals.key(shop_id) for text_type, shop_id in owners if text_type == "review"]
    cache.drop_first_pages(keys)


def store_texts(stored: Iterable[StoredText]) -> None:
    """Cache texts of MySQL. One round trip. Raises RedisDown."""
    entries = {text_key(text.text.target): entry_of(text) for text in stored}
    cache.store_all(NEVER_STALE, entries, TEXT, create=True)


def count_viewers(post_ids: Sequence[int], visit: Visit | None = None) -> list[int]:
    """Return the number of viewers of each post, within about 1 %, after counting ``visit``, if
    any. One round trip. Raises RedisDown."""
    counts: list[int] = redis.pipeline(viewer_commands(post_ids, visit))
    return counts[len(counts) - len(post_ids) :]


def viewer_commands(post_ids: Sequence[int], visit: Visit | None = None) -> list[Command]:
    """Return the commands of ``count_viewers``, whose last replies are the numbers."""
    commands = _visit_commands(post_ids, visit) if visit is not None and post_ids else []
    return [*commands, *(("PFCOUNT", viewers_key(post_id)) for post_id in post_ids)]


def add_viewer(post_ids: Sequence[int], visit: Visit) -> None:
    """Count a visit of each post. One round trip. Raises RedisDown."""
    redis.pipeline(_visit_commands(post_ids, visit))


def _visit_commands(post_ids: Sequence[int], visit: Visit) -> list[Command]:
    commands = list(visit.commands)
    for key in map(viewers_key, post_ids):
        commands += [("PFADD", key, visit.visitor), ("EXPIRE", key, VIEWERS_TTL_S)]
    return commands


def published_key(post_id: int) -> str:
    return key_of(f"post:{post_id}", "published")


def mark_published(post_ids: Sequence[int]) -> None:
    """Mark the posts as published, no longer unsent. One round trip. Raises RedisDown."""
    marks = [("SET", published_key(post_id), 1, "EX", PUBLISHED_TTL_S) for post_id in post_ids]
    redis.pipeline([*marks, ("ZREM", UNSENT_KEY, *post_ids)])


def find_unpublished(post_ids: Sequence[int]) -> list[int]:
    """Return the posts without a mark. One round trip. Raises RedisDown."""
    marks = redis.pipeline([("EXISTS", published_key(post_id)) for post_id in post_ids])
    return [post_id for post_id, marked in zip(post_ids, marks, strict=True) if not marked]


def add_unsent(post_ids: Sequence[int], now_s: int) -> None:
    """Store the posts for a later attempt. One round trip. Raises RedisDown."""
    redis.execute("ZADD", UNSENT_KEY, "NX", *(part for p in post_ids for part in (now_s, p)))


def read_unsent(count: int) -> list[int]:
    """Return up to ``count`` unsent posts, oldest first. One round trip. Raises RedisDown."""
    return [int(post_id) for post_id in redis.execute("ZRANGE", UNSENT_KEY, 0, count - 1)]
