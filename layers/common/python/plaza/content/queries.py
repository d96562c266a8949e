"""Reading what was written: one text, lists, and texts whole, with what is counted about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress

from plaza import counters
from plaza.content import mysql_store, redis_store
from plaza.content.model import (
    ContentDeleted,
    ContentListsBusy,
    ContentMissing,
    ContentPage,
    ContentView,
    Draft,
    ListPosition,
    StoredText,
    Text,
    paginate,
)
from plaza.infra import cache
from plaza.infra.cache import NEVER_STALE, CacheEntry, StillLoading
from plaza.infra.process import HotCache, LocalCache
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import COLLECT, LIKE, Target
from plaza.reactions import queries as reactions_reading
from plaza.reactions.model import Count
from plaza.shops import queries as shops_queries
from plaza.targets import Existence, lookup
from plaza.users import Card, cards

# A second: what another process deleted is shown for so long. None is what was deleted.
_texts: LocalCache[Target, Text | None] = LocalCache(max_entries=500, ttl_s=1)
_shops: LocalCache[int, bool] = LocalCache(max_entries=1_000, ttl_s=1)
_ListId = tuple[str, int, bool]  # type, owner, latest first
MAX_PAGE_SIZE = 100  # the longest page
# First pages of hot lists, for a second, for anonymous callers: authors read what they wrote.
_hot_pages: HotCache[tuple[_ListId, int], list[Text]] = HotCache(max_entries=1_000)
# Lists are public, so what one process may read of them from MySQL is limited.
_list_budget = TokenBucket(rate_per_s=50, burst=200)


def cache_in_process(stored: StoredText) -> None:
    """This process knows it to be like this."""
    _texts.put(stored.text.target, None if stored.deleted else stored.text)


def read(target: Target) -> Text:
    """One text: from memory, Redis, or MySQL. Raises ContentMissing, ContentDeleted, MysqlDown."""
    found = _read_hot([target])
    if target not in found:
        require_existing(target, lookup.find(*target))  # its marker spares MySQL what isn't there
        found = _read_alone(target)
    if target not in found:
        raise ContentMissing(f"There is no {target.type} {target.id}")
    text = found[target]
    if text is None:
        raise ContentDeleted(f"The {target.type} {target.id} was deleted")
    return text


def read_stored(target: Target) -> StoredText:
    """One text as MySQL has it now. Raises ContentMissing, MysqlDown."""
    found = mysql_store.read([target])
    if target not in found:
        raise ContentMissing(f"There is no {target.type} {target.id}")
    return found[target]


def require_not_deleted(target: Target, deleted: bool) -> None:
    """Raises ContentDeleted for what was deleted."""
    require_existing(target, Existence.DELETED if deleted else Existence.LIVE)


def require_existing(target: Target, existence: Existence) -> None:
    """Raises ContentMissing or ContentDeleted."""
    if existence is Existence.MISSING:
        raise ContentMissing(f"There is no {target.type} {target.id}")
    if existence is Existence.DELETED:
        raise ContentDeleted(f"The {target.type} {target.id} was deleted")


def require_parent(draft: Draft) -> None:
    """Raises NotFound or Gone when what ``draft`` is about isn't there; MysqlDown, RedisDown."""
    if draft.parent_id is None:
        return
    if draft.type == "comment":
        read(Target("post", draft.parent_id))
    else:
        require_shop(draft.parent_id)


def require_shop(shop_id: int) -> None:
    """Raises ShopMissing or ShopDeleted when the shop isn't there; MysqlDown, RedisDown.

    One round trip for a shop that Redis has or is known not to exist, none if this process saw it
    within a second. The filter of all shops keeps most other ids from MySQL.
    """
    if shop_id not in _shops:
        shops_queries.read(shop_id)
        _shops.put(shop_id, True)


def read_one(target: Target, actor_id: int | None, viewer: str | None = None) -> ContentView:
    """One text whole; ``viewer``, if any, has now seen it.

    Raises ContentMissing, ContentDeleted, MysqlDown, RedisDown.
    """
    [whole] = build_views([read(target)], actor_id, viewer)
    return whole


def read_posts(post_ids: Iterable[int], actor_id: int | None) -> dict[int, ContentView]:
    """The posts of ``post_ids`` that are there, whole, by id.

    A constant number of round trips: to Redis five when all is warm, and one statement when some
    isn't. Raises MysqlDown, RedisDown.
    """
    return _read_wholes("post", post_ids, actor_id)


def read_reviews(review_ids: Iterable[int], actor_id: int | None) -> dict[int, ContentView]:
    """The reviews of ``review_ids`` that are there, whole, by id.

    A constant number of round trips: to Redis three when all is warm, and one statement when some
    isn't. Raises MysqlDown, RedisDown.
    """
    return _read_wholes("review", review_ids, actor_id)


def list_posts(
    author_id: int, after: ListPosition | None, limit: int, actor_id: int | None
) -> ContentPage:
    """Somebody's posts, newest first.

    Raises ContentMissing, ContentListsBusy, MysqlDown, RedisDown.
    """
    if lookup.find("user", author_id) is Existence.MISSING:
        raise ContentMissing(f"There is no user {author_id}")
    return _list(("post", author_id, True), after, limit, actor_id)


def list_comments(
    post_id: int, after: ListPosition | None, latest: bool, limit: int, actor_id: int | None
) -> ContentPage:
    """The comments of a post, newest first if ``latest``.

    Raises ContentMissing, ContentDeleted, ContentListsBusy, MysqlDown, RedisDown.
    """
    read(Target("post", post_id))
    return _list(("comment", post_id, latest), after, limit, actor_id)


def list_reviews(
    shop_id: int, after: ListPosition | None, limit: int, actor_id: int | None
) -> ContentPage:
    """The reviews of a shop, newest first.

    Raises ShopMissing, ShopDeleted, ContentListsBusy, MysqlDown, RedisDown.
    """
    require_shop(shop_id)
    return _list(("review", shop_id, True), after, limit, actor_id)


def build_views(
    texts: Sequence[Text], actor_id: int | None, viewer: str | None = None
) -> list[ContentView]:
    """``texts`` with what is counted about them.

    Round trips to Redis when all is warm: one each for reactions and authors, and of posts one each
    for comments and viewers. Raises MysqlDown, RedisDown.
    """
    wanted = [(k, t.target) for t in texts for k in (LIKE, COLLECT) if t.type in k.targets]
    counts, exact = reactions_reading.read_counts(wanted, actor_id)
    found = dict(zip(wanted, counts, strict=True))
    authors = cards.read_cards(text.author_id for text in texts)
    posts = [text.id for text in texts if text.type == "post"]
    comments, viewers = counters.read_comments(posts), _read_viewers(posts, viewer)
    return [
        ContentView(
            text,
            authors.get(text.author_id),
            found[LIKE, text.target],
            found.get((COLLECT, text.target), Count(0, False)),
            comments.get(text.id, 0) if text.type == "post" else 0,
            viewers.get(text.id),
            exact,
        )
        for text in texts
    ]


def build_new_view(text: Text, author: Card | None) -> ContentView:
    """A text that nobody has seen yet."""
    return ContentView(text, author, Count(0, False), Count(0, False), 0, 0, True)


def _list(
    list_id: _ListId, after: ListPosition | None, limit: int, actor_id: int | None
) -> ContentPage:
    """Returns a page of a list. Raises ContentListsBusy, MysqlDown, RedisDown."""
    texts = None
    if after is None:
        is_hot = actor_id is None
        texts = _hot_pages.get((list_id, limit)) if is_hot else None
        if texts is None and (texts := _read_first(list_id, limit + 1)) is not None and is_hot:
            _hot_pages.put((list_id, limit), texts)
    if texts is None:
        texts = _read_page(list_id, after, limit + 1)
    page, last = paginate(texts, limit)
    return ContentPage(build_views(page, actor_id), last)


def _read_first(list_id: _ListId, count: int) -> list[Text] | None:
    """Returns the first ``count`` texts of a list, of which Redis keeps the ids for 3 s.

    None when MySQL is to be asked: Redis is unavailable, or a text was deleted since. Two round
    trips and no statement when all is warm. Raises ContentListsBusy, MysqlDown.
    """

    def load() -> str:
        _take_list_token()
        return json.dumps(mysql_store.read_positions(*list_id, MAX_PAGE_SIZE + 1))

    try:
        places = json.loads(cache.read_first_page(redis_store.list_key(*list_id), load))
    except (RedisDown, StillLoading):
        return None
    wanted = [Target(list_id[0], text_id) for _, text_id in places[:count]]
    found = _read_hot(wanted)
    if missing := [target for target in wanted if target not in found]:
        _take_list_token()
        found |= _read_cold(missing)
    texts = [text for target in wanted if (text := found.get(target))]
    return texts if len(texts) == len(wanted) else None


def _read_page(list_id: _ListId, after: ListPosition | None, limit: int) -> list[Text]:
    """Returns a page of a list. One statement. Raises ContentListsBusy, MysqlDown."""
    _take_list_token()
    of_type, owner_id, latest = list_id
    if of_type == "post":
        return mysql_store.read_of_author(owner_id, after, limit)
    return mysql_store.read_of_parent(of_type, owner_id, after, latest, limit)


def _take_list_token() -> None:
    """Take one page from the budget. Raises ContentListsBusy when it is empty."""
    if not _list_budget.take():
        raise ContentListsBusy("Too many lists are being read", retry_after_s=1)


def _read_wholes(
    content_type: str, content_ids: Iterable[int], actor_id: int | None
) -> dict[int, ContentView]:
    wanted = [Target(content_type, content_id) for content_id in dict.fromkeys(content_ids)]
    found = _read_hot(wanted)
    found |= _read_cold([target for target in wanted if target not in found])
    wholes = build_views([text for t in wanted if (text := found.get(t))], actor_id)
    return {whole.text.id: whole for whole in wholes}


def _read_viewers(post_ids: Sequence[int], viewer: str | None) -> dict[int, int]:
    try:
        return dict(zip(post_ids, redis_store.count_viewers(post_ids, viewer), strict=True))
    except RedisDown:
        return {}


def _read_hot(wanted: Sequence[Target]) -> dict[Target, Text | None]:
    """What memory and Redis have; None for the deleted. One round trip at most."""
    found = _texts.get_all(wanted)
    missing = [target for target in wanted if target not in found]
    with suppress(RedisDown):
        hot = redis_store.read_texts(missing)
        _texts.put_all(hot)
        found |= hot
    return found


def _read_alone(target: Target) -> dict[Target, Text | None]:
    """What MySQL has, which one of all who read it now asks. One statement."""

    def load() -> CacheEntry:
        stored = mysql_store.read([target]).get(target)
        return redis_store.entry_of(stored) if stored else CacheEntry(0, None)

    try:
        held = cache.load_single_flight(NEVER_STALE, redis_store.text_key(target), load)
    except (RedisDown, StillLoading):
        return _read_cold([target])
    if held.text is None:
        return {}
    text = redis_store.text_of(held)
    _texts.put(target, text)
    return {target: text}


def _read_cold(wanted: Sequence[Target]) -> dict[Target, Text | None]:
    """What MySQL has, None for the deleted; Redis has it from then on. One statement."""
    stored = mysql_store.read(wanted)
    with suppress(RedisDown):
        redis_store.store_texts(stored.values())
    for one in stored.values():
        cache_in_process(one)
    return {t: None if deleted else text for t, (text, deleted) in stored.items()}
