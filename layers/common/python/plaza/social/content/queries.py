"""Read texts: one, lists, and views with authors and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from plaza.core import counters
from plaza.core.reactions import Target
from plaza.core.reactions import queries as reaction_queries
from plaza.core.reactions.kinds import kinds_of
from plaza.core.reactions.model import Count
from plaza.core.targets import Existence, TargetHidden, lookup
from plaza.infra.contexts import offers
from plaza.infra.derived import cache, projections
from plaza.infra.derived.cache import NEVER_STALE, CacheEntry, StillLoading
from plaza.infra.redis import redis
from plaza.infra.redis.commands import RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.hot_reads import HotReads
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.codec import Deleted
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.process import LocalCache
from plaza.people.blocks import queries as block_queries
from plaza.people.users import Card, cards
from plaza.social.content import mysql_store, redis_store
from plaza.social.content.model import (
    TEXT,
    ContentDeleted,
    ContentListsBusy,
    ContentMissing,
    ContentPage,
    ContentView,
    Draft,
    ListCursor,
    StoredText,
    Text,
    count_fitting,
    paginate,
)

if TYPE_CHECKING:
    from plaza.core.reach import Visit

# For 1 s a text that another process changed may still be shown as it was. None: deleted.
_texts: LocalCache[Target, Text | None] = LocalCache(max_entries=500, ttl_s=1)
_shops: LocalCache[int, bool] = LocalCache(max_entries=1_000, ttl_s=1)
_NO_COUNT = Count(0, False)
_ListId = tuple[str, int, bool]  # type, owner, latest first
MAX_PAGE_SIZE = 100
# First pages of hot lists, for anonymous callers only: authors must read their own writes.
_hot_pages: HotReads[tuple[_ListId, int], list[Text]] = HotReads(
    lambda key: redis_store.list_key(*key[0])
)
_hot_comments: HotReads[int, int] = HotReads(counters.comments_key)
_hot_viewers: HotReads[int, int] = HotReads(redis_store.viewers_key)
# Lists are public, so the pages that one process reads from MySQL are limited.
_list_budget = TokenBucket(rate_per_s=50, burst=200)


def cache_in_process(stored: StoredText) -> None:
    """Cache a text, or its deletion, in this process for 1 s."""
    _texts.put(stored.text.target, None if stored.deleted else stored.text)


def read(target: Target, reader_id: int | None = None) -> Text:
    """Return a text from this process, Redis or MySQL. Raises ContentMissing, ContentDeleted;
    TargetHidden unless the reader is its author; MysqlDown."""
    texts = _read_hot([target])
    if target not in texts:
        require_existing(target, lookup.find(*target))  # spares MySQL reads of missing ids
        texts = _read_single_flight(target)
    if target not in texts:
        raise missing(target)
    text = texts[target]
    if text is None:
        raise _deleted(target)
    if not text.is_visible_to(reader_id):
        raise TargetHidden(f"{target.type.capitalize()} {target.id} is hidden.")
    return text


def read_stored(target: Target) -> StoredText:
    """Return a text from MySQL. One statement. Raises ContentMissing, MysqlDown."""
    texts = mysql_store.read([target])
    if target not in texts:
        raise missing(target)
    return texts[target]


def read_all_stored(targets: Iterable[Target]) -> dict[Target, StoredText]:
    """Return the targets that exist or were deleted, from MySQL. One statement. Raises
    MysqlDown."""
    return mysql_store.read(targets)


def require_not_deleted(target: Target, deleted: bool) -> None:
    """Raise ContentDeleted if ``deleted``."""
    require_existing(target, Existence.DELETED if deleted else Existence.LIVE)


def require_existing(target: Target, existence: Existence) -> None:
    """Raise ContentMissing or ContentDeleted unless ``existence`` is LIVE."""
    if existence is Existence.MISSING:
        raise missing(target)
    if existence is Existence.DELETED:
        raise _deleted(target)


def require_parent(draft: Draft) -> None:
    """Raise NotFound or Gone if the parent of ``draft`` does not exist; Blocked if its author and
    the author of ``draft`` may not have contact; MysqlDown, RedisDown."""
    if draft.parent_id is None:
        return
    if draft.type == "comment":
        post = read(Target("post", draft.parent_id), draft.author_id)
        if post.author_id != draft.author_id:
            block_queries.require_unblocked(draft.author_id, post.author_id)
    else:
        require_shop(draft.parent_id)


def require_shop(shop_id: int) -> None:
    """Raise NotFound or Gone if the shop does not exist; MysqlDown, RedisDown. No shop exists in a
    deployment without the wing that has them.

    No round trip if this process read the shop within 1 s, otherwise one if Redis has the shop or
    its absence. The filter of shop ids keeps most other ids from MySQL.
    """
    if shop_id not in _shops:
        require_reviewed(shop_id).require(shop_id)
        _shops.put(shop_id, True)


def require_reviewed(shop_id: int) -> Any:
    """Return the module that reads and locks shops. Raises ContentMissing in a deployment without
    shops."""
    for _, reviewed in offers("reviews"):
        return reviewed
    raise missing(Target("shop", shop_id))


def read_one(target: Target, actor_id: int | None, visit: Visit | None = None) -> ContentView:
    """Return the view of a text; count ``visit``, if any, if it is a post. Raises ContentMissing,
    ContentDeleted, TargetHidden, MysqlDown, RedisDown."""
    [view] = build_views([read(target, actor_id)], actor_id, visit)
    return view


def read_posts(
    post_ids: Iterable[int], actor_id: int | None, *, cached_only: bool = False
) -> dict[int, ContentView]:
    """Return id -> view of the posts that the actor may see. Five round trips to
    Redis if all are cached, otherwise one statement more; with ``cached_only`` posts whose texts
    are not cached are left out instead. Raises MysqlDown, RedisDown."""
    targets = [Target("post", post_id) for post_id in dict.fromkeys(post_ids)]
    return {view.text.id: view for view in _read_views(targets, actor_id, cached_only)}


def read_reviews(
    review_ids: Iterable[int], actor_id: int | None, *, cached_only: bool = False
) -> dict[int, ContentView]:
    """Return id -> view of the reviews that the actor may see. Three round trips
    to Redis if all are cached, otherwise as ``read_posts``. Raises MysqlDown, RedisDown."""
    targets = [Target("review", review_id) for review_id in dict.fromkeys(review_ids)]
    return {view.text.id: view for view in _read_views(targets, actor_id, cached_only)}


def read_views(targets: Iterable[Target], actor_id: int | None) -> dict[Target, ContentView]:
    """Return the views of the targets of any types that the actor may see. Costs and errors as
    ``read_posts``."""
    return {
        Target(view.text.type, view.text.id): view
        for view in _read_views(dict.fromkeys(targets), actor_id)
    }


def read_posts_by_id(
    post_ids: Sequence[int], actor_id: int | None
) -> tuple[list[ContentView], int]:
    """Return the views of the first of ``post_ids``, as many as fit into a response, and the number
    of these ids. A post that does not exist or is not visible has no view.

    Costs as ``read_posts``; missing ids are looked up like targets, so that few reach MySQL.
    """
    targets = [Target("post", post_id) for post_id in post_ids]
    by_target = _read_hot(targets)
    live = lookup.find_live(target for target in targets if target not in by_target)
    by_target |= _read_cold([Target(*target) for target in live])
    texts = [text for t in targets if (text := by_target.get(t)) and text.is_visible_to(actor_id)]
    fitting = count_fitting(texts)
    answered = len(targets) if fitting == len(texts) else targets.index(texts[fitting].target)
    return build_views(texts[:fitting], actor_id), answered


def list_posts(
    author_id: int, after: ListCursor | None, limit: int, actor_id: int | None
) -> ContentPage:
    """Return a page of a user's posts, newest first. Raises ContentMissing, ContentListsBusy,
    MysqlDown, RedisDown."""
    if lookup.find("user", author_id) is Existence.MISSING:
        raise missing(Target("user", author_id))
    return _list(("post", author_id, True), after, limit, actor_id)


def list_comments(
    post_id: int, after: ListCursor | None, latest: bool, limit: int, actor_id: int | None
) -> ContentPage:
    """Return a page of the comments of a post, newest first if ``latest``, without texts of users
    whom the actor blocks. Raises ContentMissing,
    ContentDeleted, TargetHidden, ContentListsBusy, MysqlDown, RedisDown."""
    read(Target("post", post_id), actor_id)
    return _list(("comment", post_id, latest), after, limit, actor_id)


def list_reviews(
    shop_id: int, after: ListCursor | None, limit: int, actor_id: int | None
) -> ContentPage:
    """Return a page of the reviews of a shop, newest first, without texts of users whom the actor
    blocks. Raises ShopMissing, ShopDeleted,
    ContentListsBusy, MysqlDown, RedisDown."""
    require_shop(shop_id)
    return _list(("review", shop_id, True), after, limit, actor_id)


def build_views(
    texts: Sequence[Text], actor_id: int | None, visit: Visit | None = None
) -> list[ContentView]:
    """Return the views of ``texts``, in their order.

    Two round trips to Redis if all is cached: one for reactions, one for the rest. Raises
    MysqlDown, RedisDown.
    """
    pairs = [(kind, text.target) for text in texts for kind in kinds_of(text.type)]
    counts, exact = reaction_queries.read_counts(pairs, actor_id)
    if actor_id is None:
        authors = cards.read_cards_as((text.author_id for text in texts), actor_id)
        posts = [text.id for text in texts if text.type == "post"]
        comments = _hot_comments.read_all(posts, counters.read_comments)
        viewers = _read_viewers(posts, visit)
    else:
        authors, comments, viewers = _read_details(texts, visit)
    next_counts = iter(counts)  # in the order of ``pairs``
    return [
        ContentView(
            text,
            authors.get(text.author_id),
            {kind.name: next(next_counts) for kind in kinds_of(text.type)},
            comments.get(text.id, 0) if text.type == "post" else 0,
            viewers.get(text.id) if text.type == "post" else None,
            exact,
        )
        for text in texts
    ]


def build_new_view(text: Text, author: Card | None) -> ContentView:
    """Return the view of a text that was just created: all counts are 0."""
    counts = {kind.name: _NO_COUNT for kind in kinds_of(text.type)}
    return ContentView(text, author, counts, 0, 0, True)


def _list(
    list_id: _ListId, after: ListCursor | None, limit: int, actor_id: int | None
) -> ContentPage:
    texts = None
    if after is None:
        is_hot = actor_id is None
        texts = _hot_pages.get((list_id, limit)) if is_hot else None
        source = _hot_pages.source_of([(list_id, limit)]) if is_hot else redis.run_all
        if (
            texts is None
            and (texts := _read_first(list_id, limit + 1, source)) is not None
            and is_hot
        ):
            _hot_pages.put((list_id, limit), texts)
    if texts is None:
        texts = _read_page(list_id, after, limit + 1)
    page, last = paginate(texts, limit)
    visible = [text for text in page if text.is_visible_to(actor_id)]
    if actor_id is not None and list_id[0] != "post" and visible:
        with suppress(Unavailable):  # a list without this filter is better than none
            blocked = block_queries.read_blocked(actor_id)
            visible = [text for text in visible if text.author_id not in blocked]
    return ContentPage(build_views(visible, actor_id), last)


def _read_first(list_id: _ListId, count: int, source: RunAll) -> list[Text] | None:
    """Return the first ``count`` texts of a list, whose ids Redis caches for 3 s; None if Redis is
    unavailable or a text was deleted since.

    Two round trips and no statement if all is cached. Raises ContentListsBusy, MysqlDown.
    """

    def load() -> list[ListCursor]:
        _take_list_token()
        return mysql_store.read_positions(*list_id, MAX_PAGE_SIZE + 1)

    key = redis_store.list_key(*list_id)
    try:
        cursors = cache.read_first_page(key, redis_store.CURSORS, load, source)
    except (RedisDown, StillLoading):
        return None
    targets = [Target(list_id[0], cursor.id) for cursor in cursors[:count]]
    by_target = _read_hot(targets)
    if missing := [target for target in targets if target not in by_target]:
        _take_list_token()
        by_target |= _read_cold(missing)
    texts = [text for target in targets if (text := by_target.get(target))]
    return texts if len(texts) == len(targets) else None


def _read_page(list_id: _ListId, after: ListCursor | None, limit: int) -> list[Text]:
    """Return a page of a list. One statement. Raises ContentListsBusy, MysqlDown."""
    _take_list_token()
    content_type, owner_id, latest = list_id
    if content_type == "post":
        return mysql_store.read_of_author(owner_id, after, limit)
    return mysql_store.read_of_parent(content_type, owner_id, after, latest, limit)


def _take_list_token() -> None:
    """Take one page from the budget. Raises ContentListsBusy if it is empty."""
    if not _list_budget.take():
        raise ContentListsBusy("Too many lists are requested.", retry_after_s=1)


def missing(target: Target) -> ContentMissing:
    """Return the error for a text that does not exist."""
    return ContentMissing(f"{target.type.capitalize()} {target.id} does not exist.")


def _deleted(target: Target) -> ContentDeleted:
    return ContentDeleted(f"{target.type.capitalize()} {target.id} was deleted.")


def _read_views(
    unique: Iterable[Target], actor_id: int | None, cached_only: bool = False
) -> list[ContentView]:
    targets = list(unique)
    by_target = _read_hot(targets)
    if not cached_only:
        by_target |= _read_cold([target for target in targets if target not in by_target])
    texts = [text for t in targets if (text := by_target.get(t)) and text.is_visible_to(actor_id)]
    return build_views(texts, actor_id)


def _read_details(
    texts: Sequence[Text], visit: Visit | None
) -> tuple[dict[int, Card], dict[int, int], dict[int, int]]:
    """Return the authors of ``texts`` by id, and comments and viewers by post, after counting
    ``visit``, if any. One round trip if Redis has all. Raises MysqlDown."""
    authors = list(dict.fromkeys(text.author_id for text in texts))
    posts = [text.id for text in texts if text.type == "post"]
    commands = [
        *cards.read_commands(authors),
        *(projections.read_command(counters.comments_key(post_id)) for post_id in posts),
        *redis_store.viewer_commands(posts, visit),
    ]
    try:
        replies = redis.pipeline(commands)
    except RedisDown:
        return cards.read_cards(authors), counters.read_comments(posts), {}
    of_posts = replies[len(authors) :]
    return (
        cards.read_cards(authors, lambda *_: replies[: len(authors)]),
        counters.read_comments(posts, lambda *_: of_posts[: len(posts)]),
        dict(zip(posts, replies[len(replies) - len(posts) :], strict=True)),
    )


def _read_viewers(post_ids: Sequence[int], visit: Visit | None) -> dict[int, int]:
    """Return the viewers of each post for an anonymous caller, {} if Redis is unavailable. A visit
    of a hot post is added without counting all viewers again."""
    hot = _hot_viewers.get_all(post_ids)
    uncounted = [post_id for post_id in post_ids if post_id not in hot]
    try:
        if visit is not None and hot:
            redis_store.add_viewer(list(hot), visit)
        counts = redis_store.count_viewers(uncounted, visit)
    except RedisDown:
        return hot
    counted = dict(zip(uncounted, counts, strict=True))
    _hot_viewers.put_all(counted)
    return hot | counted


def _read_hot(targets: Sequence[Target]) -> dict[Target, Text | None]:
    """Return the texts that this process or Redis has; None: deleted. At most one round trip."""
    texts = _texts.get_all(targets)
    missing = [target for target in targets if target not in texts]
    with suppress(RedisDown):
        hot = redis_store.read_texts(missing)
        _texts.put_all(hot)
        texts |= hot
    return texts


def _read_single_flight(target: Target) -> dict[Target, Text | None]:
    """Return a text from MySQL, which only one of the concurrent readers reads. One statement."""

    def load() -> CacheEntry[Text | Deleted]:
        stored = mysql_store.read([target]).get(target)
        return redis_store.entry_of(stored) if stored else CacheEntry(0, None)

    try:
        cached = cache.load_single_flight(NEVER_STALE, redis_store.text_key(target), TEXT, load)
    except (RedisDown, StillLoading):
        return _read_cold([target])
    if cached.value is None:
        return {}
    text = redis_store.text_of(cached)
    _texts.put(target, text)
    return {target: text}


def _read_cold(targets: Sequence[Target]) -> dict[Target, Text | None]:
    """Return texts from MySQL and cache them; None: deleted. One statement."""
    stored = mysql_store.read(targets)
    with suppress(RedisDown):
        redis_store.store_texts(stored.values())
    for entry in stored.values():
        cache_in_process(entry)
    return {t: None if deleted else text for t, (text, deleted) in stored.items()}
