"""Scores of reviews and hot posts: as in the SQL of docs/ranking.md, and their components."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from plaza.core.reactions import persist
from plaza.core.reactions import rankings as reaction_rankings
from plaza.core.reactions.model import PostRank
from plaza.infra.mysql import mysql
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.social.recommendations import (
    RebuildLists,
    like_roll_up,
    mysql_rankings,
    mysql_recommendations,
    post_rankings,
    recommend,
)
from plaza.social.recommendations.model import RankedHours, RecommendedCursor
from plaza.social.recommendations.settings import ranking_settings
from tests.integration.social.recommendations.test_rankings import random_events, ranked
from tests.integration.social.recommendations.test_recommendations import SHOP, recommended, swap
from tests.support.content_api import ask
from tests.support.likes_log import HOUR_US, add_reviews, hours_in_log, like, post
from tests.support.likes_log import review as review_target
from tests.support.plaza import World
from tests.unit.policy.modules import ROOT

ADMIN = 77
REVIEW_SQL, HOT_SQL = re.findall(
    r"^```sql\n(.*?)^```", (ROOT / "docs/ranking.md").read_text(), re.MULTILINE | re.DOTALL
)
FOLDER = "api/recommendations"


@pytest.fixture(autouse=True)
def a_full_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a full fallback budget."""
    monkeypatch.setattr(post_rankings, "_fallback_budget", TokenBucket(1_000, 1_000))


@pytest.fixture
def shop(plaza: World) -> World:
    """One shop."""
    mysql.write("INSERT INTO shop (id, name) VALUES (%s, 'Noodles')", (SHOP,))
    return plaza


def add_random_reviews(rng: random.Random, count: int) -> list[int]:
    """Insert reviews with few different values, so that many scores are equal."""
    ids = rng.sample(range(1, 2**62), count)
    for author in range(1, 46):
        mysql.write(
            "INSERT INTO user_counter (user_id, likes_received_total) VALUES (%s, %s)",
            (author, rng.choice((0, 1, 50, 10**9))),
        )
    for review_id in ids:
        images = rng.choice((None, "[]", '["a"]', '["a", "b"]'))
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id, parent_id, likes, body,"
            " images, created_at, deleted_at) VALUES ('review', %s, %s, %s, %s, %s, %s,"
            " UTC_TIMESTAMP(6) - INTERVAL %s DAY, IF(%s, UTC_TIMESTAMP(6), NULL))",
            (
                review_id,
                rng.randint(1, 90),  # most authors have no counter
                SHOP,
                rng.choice((0, 0, 1, 4, 5, 10**9)),
                rng.choice((None, "", "喫茶🍵", "x" * 199, "x" * 2_000)),
                images,
                rng.choice((-1, 0, 0, 1, 90, 3_000)),
                rng.random() < 0.1,
            ),
        )
    return ids


def render(numbers: dict[str, int]) -> str:
    return ",".join(f"{name}={number}" for name, number in numbers.items())


def points_of(name: str, value: int) -> int:
    half = ranking_settings().review_halves[name]
    return 10**6 * (half if name == "age" else value) // (value + half)


# ---------------------------------------------------------------- reviews


@pytest.mark.parametrize("seed", range(6))
def test_recommended_reviews_have_the_order_of_the_documented_sql(shop: World, seed: int) -> None:
    ids = add_random_reviews(random.Random(seed), 150)
    recommend.rebuild_recommendations([RebuildLists([SHOP])])
    expected = mysql.fetch_all(REVIEW_SQL.replace("42", str(SHOP)))
    assert recommended() == [review_id for review_id, _ in expected]
    scores = [score for _, score in expected]
    assert len(set(scores)) < len(scores) == 100 < len(ids), "there are ties"


@pytest.mark.parametrize("seed", range(6))
def test_a_score_is_the_weighted_mean_of_its_points(
    shop: World, set_up: Callable[..., None], seed: int
) -> None:
    rng = random.Random(seed)
    names = list(ranking_settings().review_weights)
    weights = dict(zip(names, rng.sample((0, 0, 1, 7, 10**6), 5), strict=True))
    halves = {name: rng.randint(1, 10**6) for name in names}
    set_up(review_weights=render(weights), review_halves=render(halves))
    scores = {}
    for review_id in add_random_reviews(rng, 30):
        score, components = mysql_recommendations.read_score(review_id)
        assert [c.points for c in components] == [points_of(c.name, c.value) for c in components]
        terms = sum(c.points * c.weight for c in components)
        assert score == terms // sum(weights.values())
        assert 0 <= score <= 10**6
        scores[review_id] = score
    recommend.rebuild_recommendations([RebuildLists([SHOP])])
    listed = recommended()
    assert listed == sorted(listed, key=lambda i: (scores[i], i), reverse=True)


def test_the_most_liked_and_the_newest_reviews_are_candidates(
    shop: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_recommendations, "MAX_CANDIDATES", 2)
    add_reviews(SHOP, *range(1, 8))
    mysql.write("UPDATE content SET likes = 9 - content_id WHERE content_id <= 2")
    mysql.write("UPDATE content SET created_at = created_at - INTERVAL content_id DAY")
    mysql.write("UPDATE content SET body = REPEAT('x', 2000) WHERE content_id = 5")
    review_ids = mysql_recommendations.read_best_reviews([SHOP])[SHOP].review_ids
    assert review_ids == [1, 2], "the newest ones are also the most liked ones"
    mysql.write("UPDATE content SET created_at = UTC_TIMESTAMP(6) WHERE content_id IN (6, 7)")
    review_ids = mysql_recommendations.read_best_reviews([SHOP])[SHOP].review_ids
    assert review_ids == [1, 2, 7, 6], "5 has the longest text, but is no candidate"


def test_operators_get_the_components_of_a_score(shop: World) -> None:
    review_path = f"/shops/{SHOP}/reviews"
    image = "https://images.example/3.jpg"
    sent = {"score": 5, "body": "x" * 200, "images": [image]}
    review = ask("POST", review_path, sent, user=7).body
    assert review["images"] == [image]
    persist.save([like(review_target(int(review["id"])), n) for n in range(1, 5)])
    like_roll_up.roll_up_likes()
    recommend.rebuild_recommendations([RebuildLists([SHOP])])
    path = f"/ops/reviews/{review['id']}/score"
    reply = ask("GET", path, user=ADMIN, role="admin", folder=FOLDER)
    assert reply.status == 200, reply.body
    assert reply.body == {
        "review_id": review["id"],
        "shop_id": str(SHOP),
        "score": (50 * 500_000 + 15 * 500_000 + 10 * 500_000 + 15 * 10**6 + 10 * 74_074) // 100,
        "rank": 1,
        "components": [
            {"name": "likes", "value": 4, "points": 500_000, "weight": 50, "half": 4},
            {"name": "length", "value": 200, "points": 500_000, "weight": 15, "half": 200},
            {"name": "images", "value": 1, "points": 500_000, "weight": 10, "half": 1},
            {"name": "age", "value": 0, "points": 1_000_000, "weight": 15, "half": 90},
            {"name": "author", "value": 4, "points": 74_074, "weight": 10, "half": 50},
        ],
    }
    assert ask("GET", path, user=7, folder=FOLDER).status == 403
    assert ask("GET", path, user=None, folder=FOLDER).status == 401
    assert (
        ask("GET", "/ops/reviews/404/score", user=ADMIN, role="admin", folder=FOLDER).status == 404
    )
    assert ask("DELETE", f"/reviews/{review['id']}", user=7).status == 204
    assert ask("GET", path, user=ADMIN, role="admin", folder=FOLDER).status == 410


def test_a_review_that_is_not_listed_has_no_rank(shop: World) -> None:
    add_reviews(SHOP, 1)
    assert recommend.explain_score(1).rank is None


# ---------------------------------------------------------------- pages of one list


def test_pages_are_of_one_list_while_it_is_replaced(shop: World) -> None:
    add_reviews(SHOP, *range(1, 10))
    swap([1, 2, 3, 4, 5, 6])
    first = recommend.recommend(SHOP, RecommendedCursor(0, 0), 2, None)
    assert first.next is not None
    for order in ([6, 5, 4, 3, 2, 1], [7, 1, 8, 2, 9, 3], [5, 6]):
        swap(order)
        swap(order)  # an equal list is not stored
    second = recommend.recommend(SHOP, first.next, 2, None)
    assert [view.text.id for view in second.reviews] == [3, 4]
    assert recommended() == [5, 6]
    swap([9, 8, 7, 6])  # the fourth since: the first list is dropped
    assert second.next is not None
    last = recommend.recommend(SHOP, second.next, 10, None)
    assert [view.text.id for view in last.reviews] == []
    third = recommend.recommend(SHOP, first.next, 10, None)
    assert [view.text.id for view in third.reviews] == [7, 6], "of the latest list"


# ---------------------------------------------------------------- hot


def weigh(hour: int, hours: RankedHours) -> int:
    half_life_h = hours.half_life_h or 0
    doubled, rest = divmod(hour - hours.landmark, half_life_h)
    return (half_life_h + rest) << doubled


@pytest.mark.parametrize("seed", range(4))
def test_hot_posts_have_the_order_of_the_documented_sql(
    plaza: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    plaza.add(*map(post, range(1, 13)))
    persist.save(random_events(random.Random(seed), 150))
    like_roll_up.roll_up_likes()
    post_rankings.refresh_rankings()
    expected = [(int(score), post_id) for post_id, score in mysql.fetch_all(HOT_SQL)]
    assert ranked("hot", limit=3) == expected
    assert len(expected) > 5
    hours = post_rankings.hours_of("hot", mysql_now_us())
    weighed: dict[int, int] = {}
    for (hour, post_id), net in hours_in_log().items():
        if hours.first <= hour <= hours.last:
            weighed[post_id] = weighed.get(post_id, 0) + net * weigh(hour, hours)
    assert sorted(((n, p) for p, n in weighed.items() if n > 0), reverse=True) == expected
    with monkeypatch.context() as patch:
        patch.setattr(reaction_rankings, "read_ranking", lambda *args: None)
        assert ranked("hot", limit=3) == expected, "from MySQL"


def mysql_now_us() -> int:
    [[now_s]] = mysql.fetch_all("SELECT UNIX_TIMESTAMP()")
    return int(now_s) * 10**6


def add_hours(likes: dict[tuple[int, int], int]) -> None:
    """Insert (hour, post) -> likes minus unlikes."""
    rows = ",".join(f"({hour}, {post_id}, {net})" for (hour, post_id), net in likes.items())
    mysql.write(f"INSERT INTO post_hour (hour, post_id, net) VALUES {rows}")


def read_hot(hours: RankedHours) -> list[PostRank]:
    return mysql_rankings.read_window(hours, 100)


def test_a_like_counts_half_as_much_after_a_half_life(plaza: World) -> None:
    plaza.add(*map(post, range(1, 5)))
    hours = post_rankings.hours_of("hot", 1_000_000 * HOUR_US)
    now = hours.last
    add_hours({(now, 1): 2, (now - 12, 2): 4, (now - 6, 3): 3, (now - 24, 4): 8})
    results = {post_id: likes for likes, post_id in read_hot(hours)}
    assert results[1] == results[2] == results[4]
    order = [post_id for _, post_id in read_hot(hours)]
    assert sorted(order[:2] + order[2:]) == [1, 2, 3, 4]
    assert [p for p in order if p != 3] == [4, 2, 1], "of equals the newest post is first"


def test_time_alone_changes_no_order_of_hot_posts(plaza: World) -> None:
    rng = random.Random(3)
    posts = range(1, 31)
    plaza.add(*map(post, posts))
    begin = 1_000_000
    add_hours({(begin - rng.randint(0, 10), p): rng.randint(1, 40) for p in posts})
    first = read_hot(post_rankings.hours_of("hot", begin * HOUR_US))
    assert len(first) == len(posts)
    scales = set()
    for hour in range(begin, begin + 109):
        result = read_hot(post_rankings.hours_of("hot", hour * HOUR_US))
        assert [post_id for _, post_id in result] == [post_id for _, post_id in first]
        scales.add(first[0][0] // result[0][0])
        assert all(a % b == 0 for (a, _), (b, _) in zip(first, result, strict=True))
    assert scales in ({1}, {1, 1024}), "cursors stay valid until the landmark moves"


def test_unlikes_may_outweigh_likes(plaza: World) -> None:
    plaza.add(post(1), post(2))
    add_hours({(1_000_000, 1): -1, (999_990, 1): 1, (1_000_000, 2): 1, (999_990, 2): -1})
    [(_, post_id)] = read_hot(post_rankings.hours_of("hot", 1_000_000 * HOUR_US))
    assert post_id == 2


@pytest.mark.parametrize("half_life_h", [6, 12, 72])
def test_scores_of_100_million_likes_are_exact_in_a_sorted_set(
    plaza: World, set_up: Callable[..., None], half_life_h: int
) -> None:
    set_up(hot_half_life_h=half_life_h)
    largest = max(
        weigh(hours.last, hours)
        for hour in range(1_000_000, 1_001_500)
        for hours in [post_rankings.hours_of("hot", hour * HOUR_US)]
    )
    assert largest * 10**8 < 2**53


def test_the_route_lists_hot_posts(plaza: World) -> None:
    plaza.add(post(1), post(2))
    persist.save([like(post(1), 1), like(post(2), 1, at=-40 * HOUR_US)])
    persist.save([like(post(2), actor, at=-40 * HOUR_US) for actor in (2, 3)])
    like_roll_up.roll_up_likes()
    post_rankings.refresh_rankings()
    items: list[Any] = []
    path = "/posts/ranking?window=hot&limit=1"
    cursor = ""
    for _ in range(2):
        body = ask("GET", path + cursor, user=None, folder=FOLDER).body
        items += [(item["id"], item["likes"]) for item in body["items"]]
        cursor = f"&cursor={body['next']}"
    assert items == [("1", 1), ("2", 3)]
    assert body["next"] is None
