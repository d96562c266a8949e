"""The demo crowd: small, skewed, deterministic, with separate ids."""

from collections import Counter

from local.load import pictures
from local.load.demo import (
    COMMENTS,
    FIRST_ID,
    FOLLOWS,
    PEOPLE,
    POSTS,
    WRITTEN,
    make_follows,
    make_interactions,
    make_texts,
)
from local.load.interactions import plan
from local.load.requests import predict


def test_crowd_is_the_same_each_time() -> None:
    assert make_interactions() == make_interactions()
    assert make_interactions() != make_interactions(seed=8)


def test_ids_are_in_a_separate_range() -> None:
    crowd = make_interactions()
    assert {item.user_id for item in crowd} <= set(range(FIRST_ID, FIRST_ID + PEOPLE))
    assert {item.item_id for item in crowd} <= set(range(FIRST_ID, FIRST_ID + POSTS))
    assert FIRST_ID > 1_000_000  # beyond the ids of the public files


def test_crowd_is_skewed() -> None:
    likes = Counter(item.item_id for item in make_interactions() if item.rating >= 4)
    ranked = [count for _, count in likes.most_common()]
    assert ranked[0] > 5 * ranked[len(ranked) // 2]
    assert sum(ranked[: POSTS // 5]) > sum(ranked) / 2


def test_crowd_likes_collects_views_and_unlikes() -> None:
    requests = plan(make_interactions())
    expectations, after = predict(requests, set())
    changes = Counter(
        request.act
        for request, expectation in zip(requests, expectations, strict=True)
        if expectation[0]
    )
    assert changes["like"] > 200
    assert changes["collect"] > 50
    assert changes["unlike"] > 50
    assert {reaction.kind for reaction in after} == {"like", "collect"}


def test_crowd_is_small_and_sorted_by_time() -> None:
    crowd = make_interactions()
    assert [item.at_s for item in crowd] == sorted(item.at_s for item in crowd)
    assert 800 <= len(plan(crowd)) <= 1300


def test_some_users_have_many_followers_and_none_follows_themself() -> None:
    follows = make_follows()
    assert follows == make_follows() != make_follows(seed=8)
    assert len(set(follows)) == len(follows) == FOLLOWS
    assert all(item != other for item, other in follows)
    people = set(range(FIRST_ID, FIRST_ID + PEOPLE))
    assert {user_id for follow in follows for user_id in follow} <= people
    followers = [count for _, count in Counter(f.followee_id for f in follows).most_common()]
    assert followers[0] > 3 * followers[len(followers) // 2]


def test_every_user_has_a_name_and_some_write() -> None:
    texts = make_texts()
    kinds = Counter(text.act for text in texts)
    assert kinds == {"rename": PEOPLE, "post": WRITTEN, "comment": COMMENTS}
    names = [text.writes["nickname"] for text in texts if text.act == "rename"]
    assert len(set(names)) == PEOPLE
    liked = {item.item_id for item in make_interactions()}
    assert {int(text.writes["post_id"]) for text in texts if text.act == "comment"} <= liked
    keys = [text.call.key for text in texts if text.act != "rename"]
    assert len(set(keys)) == len(keys)


def test_posts_and_most_people_have_pictures_that_are_in_the_repository() -> None:
    bodies = [(text.act, text.call.body or {}) for text in make_texts()]
    sent = {
        "posts": [body["images"] for act, body in bodies if act == "post"],
        "people": [[body.get("avatar")] for act, body in bodies if act == "rename"],
    }
    urls = {url for lists in sent.values() for images in lists for url in images if url is not None}
    files = {file.name for file in pictures.FOLDER.glob("*.svg")}
    assert all(len(images) == 1 for images in sent["posts"])
    assert sum(avatar == [None] for avatar in sent["people"]) < PEOPLE / 4
    assert {url.removeprefix(pictures.URL) for url in urls} <= files
    assert len(files) == 12
    for scene in pictures.SCENES:
        [url] = pictures.of_title(f"A day at the {scene}")
        assert url.removeprefix(pictures.URL) in files
    assert all(file.stat().st_size < 20_000 for file in pictures.FOLDER.glob("*.svg"))


def test_each_crowd_writes_new_texts() -> None:
    first = {text.call.key for text in make_texts() if text.act == "post"}
    assert first.isdisjoint({text.call.key for text in make_texts() if text.act == "post"})
