"""Who people are: cards and profiles, read in two round trips, changed by their owner alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza import counters
from plaza.infra import mysql, redis
from plaza.infra.process import clear_caches
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import FOLLOW, Target, queries, react
from plaza.reactions.model import TargetMissing
from plaza.targets.queues import REFRESHES
from plaza.users import Card, UserMissing, cards, mysql_users, profiles, redis_store
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.functions import ask, event, handler
from tests.support.plaza import World
from tests.support.stores import keys

ME, ADA, NOBODY = 7, 8, 404
ADAS = Target("user", ADA)
PICTURE = "https://pics.example/ada.png"


@pytest.fixture
def people(plaza: World) -> World:
    """Ada, whom two follow, and who has done things; and me."""
    mysql.write(
        "INSERT INTO user (id, nickname, avatar) VALUES"
        " (7, 'me', NULL), (8, 'Ada', 'https://pics.example/old.png'), (9, 'Bo', NULL)"
    )
    for actor in (ME, 9):
        react.react(FOLLOW, ADAS, actor, True)
    react.react(FOLLOW, Target("user", 9), ADA, True)
    plaza.queues.drain()
    mysql.write(
        "UPDATE user_counter SET posts_total = 3, likes_received_total = 40,"
        " collects_received_total = 5, version = version + 1 WHERE user_id = 8"
    )
    redis.execute("FLUSHALL")
    clear_caches()
    return plaza


def shown(user_id: int = ADA) -> tuple[str, str | None]:
    card = cards.read_cards([user_id])[user_id]
    return card.nickname, card.avatar


def in_mysql(user_id: int = ADA) -> tuple[Any, ...]:
    return mysql.fetch_all(
        "SELECT nickname, avatar, role, version FROM user WHERE id = %s", (user_id,)
    )[0]


# ---------------------------------------------------------------- profiles


def test_a_profile_shows_who_somebody_is_and_what_they_came_to(people: World) -> None:
    for _ in ("from MySQL", "from Redis"):
        assert ask("users.get_user", "api/users") == (
            200,
            {
                "id": "8",
                "nickname": "Ada",
                "avatar": "https://pics.example/old.png",
                "followers": 2,
                "following": 1,
                "posts": 3,
                "likes_received": 40,
                "collects_received": 5,
                "mine": {"following": True},
                "exact": True,
            },
        )


def test_without_a_session_and_of_oneself_there_is_no_mine(people: World) -> None:
    status, profile = ask("users.get_user_without_session", "api/users")
    assert (status, profile["nickname"], profile["mine"]) == (200, "Ada", None)
    status, profile = ask("users.get_me", "api/users")
    assert (status, profile["id"], profile["nickname"], profile["mine"]) == (200, "7", "me", None)


def test_me_is_no_id_and_needs_a_session(people: World) -> None:
    asked = event("users.get_me")
    asked["requestContext"]["authorizer"]["lambda"] = {}
    assert handler("api/users")(asked, None)["statusCode"] == 401


def test_followers_are_what_the_gate_counts_at_this_moment(people: World) -> None:
    profiles.read_profile(ADA, ME)
    react.react(FOLLOW, ADAS, ME, False)
    profile = profiles.read_profile(ADA, ME)
    assert (profile.followers, profile.following) == (1, False)


def test_a_warm_profile_is_two_round_trips_and_nothing_of_mysql(people: World) -> None:
    profiles.read_profile(ADA, ME)
    clear_caches()  # in another process too
    before = statements()
    with count_round_trips() as counter:
        profiles.read_profile(ADA, ME)
    assert (counter.sent, statements() - before) == (2, 1)


def test_there_is_no_profile_of_nobody_and_mysql_is_asked_once(people: World) -> None:
    for _ in range(2):
        with pytest.raises(TargetMissing):
            profiles.read_profile(NOBODY, ME)
    before = statements()
    with pytest.raises(TargetMissing):
        profiles.read_profile(NOBODY, ME)
    assert statements() - before == 1
    assert not redis.execute("EXISTS", keys(Target("user", NOBODY), FOLLOW).meta), "never hot"


def test_while_redis_is_away_mysql_says_it_and_the_answer_says_so(
    people: World, redis_away: Away
) -> None:
    with redis_away():
        profile = profiles.read_profile(ADA, ME)
        assert (profile.exact, profile.followers, profile.following) == (False, 2, True)
        assert (profile.card.nickname, profile.totals.posts_total) == ("Ada", 3)
        with pytest.raises(UserMissing):
            profiles.read_profile(NOBODY, None)


def test_what_mysql_is_asked_in_place_of_redis_is_rationed(
    people: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(0.001, 1))
    with redis_away():
        profiles.read_profile(ADA, ME)
        before = statements()
        with pytest.raises(RedisDown):
            profiles.read_profile(ADA, ME)
        assert statements() - before == 1, "refused before MySQL was asked anything"


def test_while_mysql_is_away_a_warm_profile_is_shown(people: World, mysql_away: Away) -> None:
    profiles.read_profile(ADA, ME)
    with mysql_away():
        assert profiles.read_profile(ADA, ME).card.nickname == "Ada"


# ---------------------------------------------------------------- cards


def test_many_cards_are_one_round_trip_and_only_the_missing_are_asked_of_mysql(
    people: World,
) -> None:
    cards.read_cards([ME])
    before = statements()
    with count_round_trips() as counter:
        found = cards.read_cards([ADA, ME, NOBODY, ADA, 9])
    assert found == {
        ME: Card(ME, "me", None),
        ADA: Card(ADA, "Ada", "https://pics.example/old.png"),
        9: Card(9, "Bo", None),
    }
    assert (counter.sent, statements() - before) == (2, 2)
    with count_round_trips() as counter:
        assert cards.read_cards([9, ADA, ME]) == found
    assert counter.sent == 1
    with count_round_trips() as counter:
        assert cards.read_cards([]) == {}
    assert counter.sent == 0


def test_cards_come_from_mysql_while_redis_is_away(people: World, redis_away: Away) -> None:
    with redis_away():
        assert shown() == ("Ada", "https://pics.example/old.png")


@pytest.mark.parametrize("nickname", ["王小明", "O'Neil; DROP", '"q"', "🦊\u200d🔥", "a\\b"])
def test_a_name_of_any_characters_comes_back_as_it_went(people: World, nickname: str) -> None:
    profiles.change_profile(ADA, {"nickname": nickname})
    assert shown()[0] == nickname
    redis.execute("FLUSHALL")
    assert [shown()[0] for _ in range(2)] == [nickname, nickname]


# ---------------------------------------------------------------- changing


def test_a_profile_is_changed_and_everybody_sees_it(people: World) -> None:
    cards.read_cards([ME])
    status, profile = ask("users.change_me", "api/users")
    assert (status, profile["nickname"], profile["avatar"]) == (200, "Ada", PICTURE)
    assert (profile["id"], profile["following"], profile["mine"]) == ("7", 1, None)
    assert shown(ME) == ("Ada", PICTURE)
    assert in_mysql(ME) == ("Ada", PICTURE, "user", 2)
    assert [json.loads(m) for m in people.queues.messages[REFRESHES]] == [{"type": "user", "id": 7}]


def change(**said: Any) -> tuple[int, dict[str, Any]]:
    """PATCH /users/me by user 8."""
    asked = event("users.change_me")
    asked["requestContext"]["authorizer"]["lambda"]["user_id"] = str(ADA)
    answer = handler("api/users")(asked | {"body": json.dumps(said)}, None)
    return answer["statusCode"], json.loads(answer["body"])


def test_what_is_not_said_stays_and_null_takes_the_picture_away(people: World) -> None:
    assert change(nickname="  Ada Lovelace ")[0] == 200
    assert in_mysql()[:2] == ("Ada Lovelace", "https://pics.example/old.png")
    assert change(avatar=None)[1]["avatar"] is None
    assert in_mysql()[:2] == ("Ada Lovelace", None)
    assert change(avatar=PICTURE, nickname="x" * 40)[0] == 200
    assert shown() == ("x" * 40, PICTURE)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"role": "admin"},
        {"nickname": "Ada", "role": "admin"},
        {"nickname": "\ud800"},
        {"avatar": "http://pics.example/a.png"},
    ],
    ids=ascii,
)
def test_what_is_no_change_of_ones_profile_is_refused_and_changes_nothing(
    people: World, said: dict[str, Any]
) -> None:
    status, problem = change(**said)
    assert (status, problem["type"].rpartition("/")[2]) == (400, "invalid-request")
    assert in_mysql() == ("Ada", "https://pics.example/old.png", "user", 1)


def test_nobody_becomes_an_admin_by_asking(people: World) -> None:
    status, problem = ask("users.promote_me", "api/users")
    assert status == 400
    assert [error["field"] for error in problem["errors"]] == ["body.role"]
    assert in_mysql(ME)[2] == "user"


def test_who_is_not_there_any_more_can_not_change(people: World) -> None:
    mysql.write("DELETE FROM user WHERE id = 8")
    assert change(nickname="Ghost")[0] == 404


def test_a_change_that_redis_did_not_hear_of_is_made_good_by_its_announcement(
    people: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had died after the commit."""
    cards.read_cards([ADA])

    def die(*_: object, **__: object) -> None:
        raise RedisDown("now")

    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "store_cards", die)
        assert profiles.change_profile(ADA, {"nickname": "Countess"}).card.nickname == "Countess"
    assert shown()[0] == "Ada", "Redis did not hear of it"
    people.queues.drain()
    assert shown()[0] == "Countess"


def test_a_change_needs_no_queue_and_no_redis(people: World, redis_away: Away) -> None:
    people.queues.away = True
    assert profiles.change_profile(ADA, {"nickname": "A"}).card.nickname == "A"
    assert shown()[0] == "A"
    with redis_away():
        profile = profiles.change_profile(ADA, {"nickname": "B"})
        assert (profile.card.nickname, profile.exact) == ("B", False)
    assert shown()[0] == "B"


@pytest.mark.parametrize("warm", [True, False], ids=["in Redis", "not in Redis"])
def test_a_reader_who_read_before_a_change_does_not_bring_the_old_name_back(
    people: World, warm: bool
) -> None:
    if warm:
        cards.read_cards([ADA])
    read = mysql_users.read_cards([ADA])
    profiles.change_profile(ADA, {"nickname": "new"})
    redis_store.store_cards(read, create=True)
    assert shown()[0] == "new"


def test_of_two_changes_the_later_stays_whichever_redis_hears_of_last(people: World) -> None:
    cards.read_cards([ADA])
    first = mysql.run_in_transaction(
        lambda c: mysql_users.update_columns(c, ADA, {"nickname": "1"})
    )
    second = mysql.run_in_transaction(
        lambda c: mysql_users.update_columns(c, ADA, {"nickname": "2"})
    )
    assert first
    assert second
    redis_store.store_cards({ADA: second}, create=False)
    redis_store.store_cards({ADA: first}, create=False)
    assert shown()[0] == "2"


def test_a_change_of_nothing_new_is_a_change_all_the_same(people: World) -> None:
    for _ in range(2):
        assert change(nickname="Ada", avatar="https://pics.example/old.png")[0] == 200
    assert in_mysql() == ("Ada", "https://pics.example/old.png", "user", 3)


def test_totals_of_a_profile_follow_what_is_saved(people: World) -> None:
    assert profiles.read_profile(ME, None).totals.following_total == 1
    react.react(FOLLOW, Target("user", 9), ME, True)
    assert profiles.read_profile(ME, None).totals.following_total == 1, "on its way"
    people.queues.drain()
    assert profiles.read_profile(ME, None).totals.following_total == 2
    assert counters.read_users([ME])[ME].following_total == 2
