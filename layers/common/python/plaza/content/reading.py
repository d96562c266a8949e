"""Reading what was written: one text, lists, and texts whole, with what is counted about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress

from plaza import counters
from plaza.content import mysql_content, redis_content
from plaza.content.content import (
    ContentGone,
    ContentMissing,
    Draft,
    Listed,
    ListsBusy,
    Place,
    Stored,
    Text,
    Whole,
    cut,
)
from plaza.infra import cache
from plaza.infra.cache import NEVER_STALE, Entry, StillLoading
from plaza.infra.process import HotCache, LocalCache
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import COLLECT, LIKE, Target
from plaza.reactions import reading as reactions_reading
from plaza.reactions.reactions import Count
from plaza.shops import reading as shops_reading
from plaza.targets import There, finding
from plaza.users import Card, cards

# A second: what another process deleted is shown for so long. None is what was deleted.
_texts: LocalCache[Target, Text | None] = LocalCache(max_entries=500, ttl_s=1)
_shops: LocalCache[int, bool] = LocalCache(max_entries=1_000, ttl_s=1)
_ListOf = tuple[str, int, bool]  # type, owner, latest first
MOST_LISTED = 100  # the longest page
# First pages of hot lists, for a second, for anonymous callers: authors read what they wrote.
_hot_pages: HotCache[tuple[_ListOf, int], list[Text]] = HotCache(max_entries=1_000)
# Lists are public, so what one process may read of them from MySQL is limited.
_list_budget = TokenBucket(rate_per_s=50, burst=200)


def remember(stored: Stored) -> None:
    """This process knows it to be like this."""
    _texts.put(stored.text.target, None if stored.deleted else stored.text)


def read(target: Target) -> Text:
    """One text: from memory, Redis, or MySQL. Raises ContentMissing, ContentGone, MysqlDown."""
    found = _read_hot([target])
    if target not in found:
        insist_there(target, finding.find(*target))  # its marker spares MySQL what isn't there
        found = _read_alone(target)
    if target not in found:
        raise ContentMissing(f"There is no {target.type} {target.id}")
    text = found[target]
    if text is None:
        raise ContentGone(f"The {target.type} {target.id} was deleted")
    return text


def read_stored(target: Target) -> Stored:
    """One text as MySQL has it now. Raises ContentMissing, MysqlDown."""
    found = mysql_content.read([target])
    if target not in found:
        raise ContentMissing(f"There is no {target.type} {target.id}")
    return found[target]


def insist(target: Target, deleted: bool) -> None:
    """Raises ContentGone for what was deleted."""
    insist_there(target, There.GONE if deleted else There.LIVE)


def insist_there(target: Target, there: There) -> None:
    """Raises ContentMissing or ContentGone."""
    if there is There.NONE:
        raise ContentMissing(f"There is no {target.type} {target.id}")
    if there is There.GONE:
        raise ContentGone(f"The {target.type} {target.id} was deleted")


def require_parent(draft: Draft) -> None:
    """Raises NotFound or Gone when what ``draft`` is about isn't there; MysqlDown, RedisDown."""
    if draft.parent_id is None:
        return
    if draft.type == "comment":
        read(Target("post", draft.parent_id))
    else:
        require_shop(draft.parent_id)


def require_shop(shop_id: int) -> None:
    """Raises ShopMissing or ShopGone when the shop isn't there; MysqlDown, RedisDown.

    One round trip for a shop that Redis has or is known not to exist, none if this process saw it
    within a second. The filter of all shops keeps most other ids from MySQL.
    """
    if shop_id not in _shops:
        shops_reading.read(shop_id)
        _shops.put(shop_id, True)


def read_one(target: Target, actor_id: int | None, viewer: str | None = None) -> Whole:
    """One text whole; ``viewer``, if any, has now seen it.

    Raises ContentMissing, ContentGone, MysqlDown, RedisDown.
    """
    [whole] = complete([read(target)], actor_id, viewer)
    return whole


def read_posts(post_ids: Iterable[int], actor_id: int | None) -> dict[int, Whole]:
    """The posts of ``post_ids`` that are there, whole, by id.

    A constant number of round trips: to Redis five when all is warm, and one statement when some
    isn't. Raises MysqlDown, RedisDown.
    """
    return _read_wholes("post", post_ids, actor_id)


def read_reviews(review_ids: Iterable[int], actor_id: int | None) -> dict[int, Whole]:
    """The reviews of ``review_ids`` that are there, whole, by id.

    A constant number of round trips: to Redis three when all is warm, and one statement when some
    isn't. Raises MysqlDown, RedisDown.
    """
    return _read_wholes("review", review_ids, actor_id)


def list_posts(author_id: int, after: Place | None, limit: int, actor_id: int | None) -> Listed:
    """Somebody's posts, newest first. Raises ContentMissing, ListsBusy, MysqlDown, RedisDown."""
    if finding.find("user", author_id) is There.NONE:
        raise ContentMissing(f"There is no user {author_id}")
    return _list(("post", author_id, True), after, limit, actor_id)


def list_comments(
    post_id: int, after: Place | None, latest: bool, limit: int, actor_id: int | None
) -> Listed:
    """The comments of a post, newest first if ``latest``.

    Raises ContentMissing, ContentGone, ListsBusy, MysqlDown, RedisDown.
    """
    read(Target("post", post_id))
    return _list(("comment", post_id, latest), after, limit, actor_id)


def list_reviews(shop_id: int, after: Place | None, limit: int, actor_id: int | None) -> Listed:
    """The reviews of a shop, newest first.

    Raises ShopMissing, ShopGone, ListsBusy, MysqlDown, RedisDown.
    """
    require_shop(shop_id)
    return _list(("review", shop_id, True), after, limit, actor_id)


def complete(texts: Sequence[Text], actor_id: int | None, viewer: str | None = None) -> list[Whole]:
    """``texts`` with what is counted about them.

    Round trips to Redis when all is warm: one each for reactions and authors, and of posts one each
    for comments and viewers. Raises MysqlDown, RedisDown.
    """
    wanted = [(k, t.target) for t in texts for k in (LIKE, COLLECT) if t.type in k.targets]
    counts, exact = reactions_reading.count(wanted, actor_id)
    found = dict(zip(wanted, counts, strict=True))
    authors = cards.read_cards(text.author_id for text in texts)
    posts = [text.id for text in texts if text.type == "post"]
    comments, viewers = counters.read_comments(posts), _read_viewers(posts, viewer)
    return [
        Whole(
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


def untouched(text: Text, author: Card | None) -> Whole:
    """A text that nobody has seen yet."""
    return Whole(text, author, Count(0, False), Count(0, False), 0, 0, True)


def _list(of: _ListOf, after: Place | None, limit: int, actor_id: int | None) -> Listed:
    """Returns a page of a list. Raises ListsBusy, MysqlDown, RedisDown."""
    texts = None
    if after is None:
        is_hot = actor_id is None
        texts = _hot_pages.get((of, limit)) if is_hot else None
        if texts is None and (texts := _read_first(of, limit + 1)) is not None and is_hot:
            _hot_pages.put((of, limit), texts)
    if texts is None:
        texts = _read_page(of, after, limit + 1)
    page, last = cut(texts, limit)
    return Listed(complete(page, actor_id), last)


def _read_first(of: _ListOf, count: int) -> list[Text] | None:
    """Returns the first ``count`` texts of a list, of which Redis keeps the ids for 3 s.

    None when MySQL is to be asked: Redis is unavailable, or a text was deleted since. Two round
    trips and no statement when all is warm. Raises ListsBusy, MysqlDown.
    """

    def load() -> str:
        _take_list()
        return json.dumps(mysql_content.read_places(*of, MOST_LISTED + 1))

    try:
        places = json.loads(cache.read_first_page(redis_content.list_key(*of), load))
    except (RedisDown, StillLoading):
        return None
    wanted = [Target(of[0], text_id) for _, text_id in places[:count]]
    found = _read_hot(wanted)
    if missing := [target for target in wanted if target not in found]:
        _take_list()
        found |= _read_cold(missing)
    texts = [text for target in wanted if (text := found.get(target))]
    return texts if len(texts) == len(wanted) else None


def _read_page(of: _ListOf, after: Place | None, limit: int) -> list[Text]:
    """Returns a page of a list. One statement. Raises ListsBusy, MysqlDown."""
    _take_list()
    of_type, owner_id, latest = of
    if of_type == "post":
        return mysql_content.read_of_author(owner_id, after, limit)
    return mysql_content.read_of_parent(of_type, owner_id, after, latest, limit)


def _take_list() -> None:
    """Take one page from the budget. Raises ListsBusy when it is empty."""
    if not _list_budget.take():
        raise ListsBusy("Too many lists are being read", retry_after_s=1)


def _read_wholes(
    content_type: str, content_ids: Iterable[int], actor_id: int | None
) -> dict[int, Whole]:
    wanted = [Target(content_type, content_id) for content_id in dict.fromkeys(content_ids)]
    found = _read_hot(wanted)
    found |= _read_cold([target for target in wanted if target not in found])
    wholes = complete([text for t in wanted if (text := found.get(t))], actor_id)
    return {whole.text.id: whole for whole in wholes}


def _read_viewers(post_ids: Sequence[int], viewer: str | None) -> dict[int, int]:
    try:
        return dict(zip(post_ids, redis_content.count_viewers(post_ids, viewer), strict=True))
    except RedisDown:
        return {}


def _read_hot(wanted: Sequence[Target]) -> dict[Target, Text | None]:
    """What memory and Redis have; None for the deleted. One round trip at most."""
    found = _texts.get_all(wanted)
    missing = [target for target in wanted if target not in found]
    with suppress(RedisDown):
        hot = redis_content.read_texts(missing)
        _texts.put_all(hot)
        found |= hot
    return found


def _read_alone(target: Target) -> dict[Target, Text | None]:
    """What MySQL has, which one of all who read it now asks. One statement."""

    def load() -> Entry:
        stored = mysql_content.read([target]).get(target)
        return redis_content.entry_of(stored) if stored else Entry(0, None)

    try:
        held = cache.load_alone(NEVER_STALE, redis_content.text_key(target), load)
    except (RedisDown, StillLoading):
        return _read_cold([target])
    if held.text is None:
        return {}
    text = redis_content.text_of(held)
    _texts.put(target, text)
    return {target: text}


def _read_cold(wanted: Sequence[Target]) -> dict[Target, Text | None]:
    """What MySQL has, None for the deleted; Redis has it from then on. One statement."""
    stored = mysql_content.read(wanted)
    with suppress(RedisDown):
        redis_content.keep_texts(stored.values())
    for one in stored.values():
        remember(one)
    return {t: None if deleted else text for t, (text, deleted) in stored.items()}
