"""The table of truth: what agrees is clean, and every way to disagree is found."""

import pytest

from local.interactions import Reaction
from local.replay import find_differences
from local.truth import Cache, Difference, Hot, Record, Truth, compare
from plaza.reactions import Target

POST = Target("post", 7)
LIKES = ("like", POST)
NOTHING_QUEUED = {"reactions": (0, 0), "reactions_dlq": (0, 0)}


@pytest.fixture
def record() -> Record:
    """Users 1 and 2 like the post of user 9."""
    return Record(
        on={LIKES: {1: 100, 2: 200}},
        counters={POST: {"like": 2, "collect": 0}},
        authors={POST: 9},
        received={9: {"like": 2, "collect": 0}},
        log=2,
    )


@pytest.fixture
def cache() -> Cache:
    return Cache(hot={LIKES: Hot(total=2, complete=True, recent={1: 100, 2: 200})})


def truth(record: Record, cache: Cache, **depths: tuple[int, int]) -> Truth:
    return compare(record, cache, NOTHING_QUEUED | depths)


def test_where_all_agree_it_is_clean(record: Record, cache: Cache) -> None:
    found = truth(record, cache)
    assert found.clean
    assert found.to_json() == {
        "clean": True,
        "targets": 1,
        "hot": 1,
        "drift": 0,
        "others": 0,
        "pending": 0,
        "dirty": 0,
        "queued": 0,
        "dead": 0,
        "accepted": 2,
        "persisted": 2,
        "totals": {
            "like": {"rows": 2, "counters": 2, "hot": 2, "hot_counters": 2},
            "collect": {"rows": 0, "counters": 0, "hot": 0, "hot_counters": 0},
        },
        "differences": [],
    }


def test_nothing_at_all_is_clean() -> None:
    assert truth(Record(), Cache()).clean


def test_a_target_that_is_not_in_redis_is_compared_in_mysql(record: Record) -> None:
    assert truth(record, Cache()).clean
    record.counters[POST]["like"] = 3
    record.received[9]["like"] = 3
    assert truth(record, Cache()).differences == [
        Difference("like post:7", "Redis not there, counter 3, rows 2")
    ]


def test_a_total_in_redis_that_is_too_high_is_drift(record: Record, cache: Cache) -> None:
    cache.hot[LIKES].total = 3
    found = truth(record, cache)
    assert (found.clean, found.drift, found.others) == (False, 1, 0)
    assert str(found.differences[0]) == "like post:7: Redis 3, counter 2, rows 2"


def test_a_total_in_redis_for_what_mysql_has_nothing_of_is_drift() -> None:
    found = truth(Record(), Cache(hot={LIKES: Hot(total=1, recent={1: 1})}))
    assert found.drift == 1
    assert found.targets == 1


def test_rows_without_a_counter_are_drift(record: Record) -> None:
    del record.counters[POST]
    del record.authors[POST]
    del record.received[9]
    assert truth(record, Cache()).drift == 1


def test_totals_alone_do_not_hide_wrong_people(record: Record, cache: Cache) -> None:
    cache.hot[LIKES].recent = {1: 100, 3: 200}
    assert [d.said for d in truth(record, cache).differences] == [
        "in Redis and not in the rows: 3",
        "in the rows and not in Redis: 2",
    ]


def test_a_list_that_is_not_complete_may_lack_people(record: Record, cache: Cache) -> None:
    cache.hot[LIKES].recent = {2: 200}
    cache.hot[LIKES].complete = False
    assert truth(record, cache).clean


def test_an_author_must_have_received_what_their_posts_have(record: Record, cache: Cache) -> None:
    record.received[9]["like"] = 1
    assert truth(record, cache).differences == [
        Difference("likes received by user 9", "counter 1, sum over their content 2")
    ]


def test_who_wrote_nothing_must_have_received_nothing(record: Record, cache: Cache) -> None:
    record.received[5] = {"like": 0, "collect": 4}
    assert truth(record, cache).differences == [
        Difference("collects received by user 5", "counter 4, sum over their content 0")
    ]


def test_an_author_without_a_counter_has_received_nothing(record: Record, cache: Cache) -> None:
    record.received.clear()
    assert truth(record, cache).others == 1


def test_a_log_that_says_otherwise_is_a_difference(record: Record, cache: Cache) -> None:
    record.log_differences.append(Difference("like post:7 by 1", "log 1@100, row 0@90"))
    found = truth(record, cache)
    assert not found.clean
    assert found.others == 1


def test_what_is_pending_is_not_clean_and_no_drift(record: Record, cache: Cache) -> None:
    hot = cache.hot[LIKES]
    hot.total, hot.pending, hot.recent[3] = 3, {3: (True, 300)}, 300
    cache.dirty = {"like:post:7"}
    found = truth(record, cache)
    assert (found.clean, found.quiet, found.drift, found.others) == (False, False, 0, 0)
    assert (found.pending, found.accepted, found.persisted) == (1, 3, 2)


def test_what_is_pending_and_saved_already_is_accepted_once(record: Record, cache: Cache) -> None:
    cache.hot[LIKES].pending = {2: (True, 200)}
    cache.dirty = {"like:post:7"}
    assert truth(record, cache).accepted == 2


def test_pending_changes_that_the_sweeper_would_not_find_are_told(
    record: Record, cache: Cache
) -> None:
    cache.hot[LIKES].pending = {2: (True, 200)}
    assert truth(record, cache).differences == [
        Difference("like post:7", "1 pending, and not dirty")
    ]


def test_an_outbox_without_its_target_is_not_clean(record: Record) -> None:
    cache = Cache(hot={LIKES: Hot(pending={3: (True, 300)})}, dirty={"like:post:7"})
    found = truth(record, cache)
    assert (found.clean, found.hot, found.pending, found.drift) == (False, 0, 1, 0)


def test_a_mark_for_the_sweeper_that_was_left_is_not_clean(record: Record, cache: Cache) -> None:
    cache.dirty = {"like:post:7"}
    assert not truth(record, cache).quiet


@pytest.mark.parametrize("depth", [(1, 0), (0, 1)])
def test_messages_on_their_way_are_not_clean(
    record: Record, cache: Cache, depth: tuple[int, int]
) -> None:
    found = truth(record, cache, reactions=depth)
    assert (found.quiet, found.clean) == (False, False)
    assert found.queued == {"reactions": 1}


def test_messages_in_a_dlq_are_quiet_and_not_clean(record: Record, cache: Cache) -> None:
    found = truth(record, cache, reactions_dlq=(2, 0))
    assert (found.quiet, found.clean, found.dead) == (True, False, {"reactions_dlq": 2})


def test_twenty_differences_are_told_and_all_are_counted() -> None:
    record = Record(on={("like", Target("post", id_)): {1: 1} for id_ in range(1, 31)})
    said = truth(record, Cache()).to_json()
    assert said["drift"] == 30
    assert len(said["differences"]) == 20


def like(item_id: int, user_id: int) -> Reaction:
    return Reaction("like", item_id, user_id)


def test_the_file_is_compared_person_by_person() -> None:
    expected, rows = {like(7, 1), like(7, 2)}, {like(7, 1), like(7, 3)}
    seen = {7: {"like": 2, "collect": 0}}
    assert find_differences(expected, rows, seen, {7: [1, 2]}) == [
        "like of post 7 by user 3 is in the rows, not in the file",
        "like of post 7 by user 2 is in the file, not in the rows",
    ]


def test_the_totals_of_the_api_are_compared_with_the_file() -> None:
    expected = {like(7, 1), Reaction("collect", 7, 1)}
    seen = {7: {"like": 2, "collect": 1}, 8: {"like": 0, "collect": 0}}
    assert find_differences(expected, expected, seen, {}) == [
        "post 7 has 2 likes by the API, 1 by the file"
    ]


@pytest.mark.parametrize("likers", [[1], [1, 2, 2], [1, 2, 3], []])
def test_the_likers_of_the_api_are_compared_with_the_file(likers: list[int]) -> None:
    expected = {like(7, 1), like(7, 2)}
    seen = {7: {"like": 2, "collect": 0}}
    (difference,) = find_differences(expected, expected, seen, {7: likers})
    assert difference.startswith("likers of post 7 by the API are wrong")
