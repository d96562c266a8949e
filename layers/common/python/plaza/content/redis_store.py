"""Content in Redis, in the shard of the post, comment or review:

{<shard>}:<type>:<id>:text     hash    version, value: the text, JSON, or "deleted" (``infra.cache``)
{<shard>}:<owner>:<list>       hash    version, value: the first page of a list: [[time, id], ...]
{<shard>}:post:<id>:viewers  string  HyperLogLog: who saw it
{<shard>}:post:<id>:published   string  it was sent to those who push it to followers

and, for all of Plaza, {<shard>}:posts:unsent, a zset: post -> when sending it failed, seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plaza.content.model import DELETED, LIVE, StoredText, Text
from plaza.infra import cache, redis
from plaza.infra.cache import NEVER_STALE, CachedValue, CacheEntry
from plaza.infra.projections import key_of
from plaza.reactions import Target

VIEWERS_TTL_S = 90 * 86_400
PUBLISHED_TTL_S = 86_400
UNSENT_KEY = key_of("posts", "unsent")
_DELETED_TEXT = "deleted"


def text_key(target: Target) -> str:
    """Where a text is projected to."""
    return key_of(str(target), "text")


def viewers_key(post_id: int) -> str:
    """Where the viewers of a post are counted."""
    return key_of(f"post:{post_id}", "viewers")


def read_texts(targets: Iterable[Target]) -> dict[Target, Text | None]:
    """The texts that are in Redis, None for the deleted. One round trip. Raises RedisDown."""
    wanted = list(targets)
    found = cache.read_all([text_key(target) for target in wanted])
    return {t: text_of(held) for t, held in zip(wanted, found, strict=True) if held and held.text}


def text_of(held: CachedValue) -> Text | None:
    """The text that is held, None for a deleted one."""
    return None if held.text in (None, _DELETED_TEXT) else Text.from_json(held.text)


def entry_of(stored: StoredText) -> CacheEntry:
    """A text as it is kept. What is deleted is kept as such: a late reader who still saw it live
    can't bring it back."""
    text, deleted = stored
    return CacheEntry(DELETED, _DELETED_TEXT) if deleted else CacheEntry(LIVE, text.to_json())


def list_key(text_type: str, owner_id: int, latest: bool) -> str:
    """Where the first page of a list is: the posts of a user, what is about a post or a shop."""
    owner = {"post": "user", "comment": "post", "review": "shop"}[text_type]
    return key_of(f"{owner}:{owner_id}", f"{text_type}s:{'latest' if latest else 'earliest'}")


def drop_lists(texts: Iterable[Text]) -> None:
    """Let go of the lists that ``texts`` come into or leave. One round trip. Raises RedisDown."""
    owners = {
        (text.type, text.author_id if text.parent_id is None else text.parent_id) for text in texts
    }
    cache.drop_first_pages(
        list_key(*owner, latest) for owner in sorted(owners) for latest in (True, False)
    )


def store_texts(stored: Iterable[StoredText]) -> None:
    """Keep what MySQL has. One round trip. Raises RedisDown."""
    entries = {text_key(one.text.target): entry_of(one) for one in stored}
    cache.store_all(NEVER_STALE, entries, create=True)


def count_viewers(post_ids: Sequence[int], viewer: str | None = None) -> list[int]:
    """About how many saw each of the posts (off by 1% or so); ``viewer``, if any, now has.

    One round trip. Raises RedisDown.
    """
    commands: list[tuple[str | int, ...]] = []
    for key in map(viewers_key, post_ids):
        if viewer is not None:
            commands += [("PFADD", key, viewer), ("EXPIRE", key, VIEWERS_TTL_S)]
        commands.append(("PFCOUNT", key))
    of_each = 1 if viewer is None else 3
    return redis.pipeline(commands)[of_each - 1 :: of_each]


def published_key(post_id: int) -> str:
    """Where it stands that a post was sent to those who push it."""
    return key_of(f"post:{post_id}", "published")


def mark_published(post_ids: Sequence[int]) -> None:
    """The posts were sent to those who push them. One round trip. Raises RedisDown."""
    marks = [("SET", published_key(post_id), 1, "EX", PUBLISHED_TTL_S) for post_id in post_ids]
    redis.pipeline([*marks, ("ZREM", UNSENT_KEY, *post_ids)])


def find_unpublished(post_ids: Sequence[int]) -> list[int]:
    """Those of the posts that have no mark. One round trip. Raises RedisDown."""
    marks = redis.pipeline([("EXISTS", published_key(post_id)) for post_id in post_ids])
    return [post_id for post_id, there in zip(post_ids, marks, strict=True) if not there]


def add_unsent(post_ids: Sequence[int], now_s: int) -> None:
    """Remember that the posts could not be sent. One round trip. Raises RedisDown."""
    redis.execute("ZADD", UNSENT_KEY, "NX", *(part for p in post_ids for part in (now_s, p)))


def read_unsent(count: int) -> list[int]:
    """The posts that could not be sent, oldest first. One round trip. Raises RedisDown."""
    return [int(post_id) for post_id in redis.execute("ZRANGE", UNSENT_KEY, 0, count - 1)]
