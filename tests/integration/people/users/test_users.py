"""Cards and profiles of users on real servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.core import counters
from plaza.core.reactions import FOLLOW, Target, queries, react
from plaza.core.reactions.model import TargetMissing
from plaza.core.targets.queues import REFRESHES
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.process import clear_caches
from plaza.people.users import Card, UserMissing, cards, mysql_users, profiles, redis_store
from tests.integration.conftest import Away
from tests.support.consumers import statements
from tests.support.failures import failing
from tests.support.functions import ask, authorization, event, handler
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER
from tests.support.stores import ORDER_TOKEN, keys

ME, ADA, MISSING = 7, 8, 404
ADAS = Target("user", ADA)
PICTURE = "https://pics.example/ada.png"


@pytest.fixture
def people(plaza: World) -> World:
    """Add Ada, who has two followers and totals, and users 7 and 9."""
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


def read_card(user_id: int = ADA) -> tuple[str, str | None]:
    card = cards.read_cards([user_id])[user_id]
    return card.nickname, card.avatar


def in_mysql(user_id: int = ADA) -> tuple[Any, ...]:
    return mysql.fetch_all(
        "SELECT nickname, avatar, role, version FROM user WHERE id = %s", (user_id,)
    )[0]


# ---------------------------------------------------------------- profiles


def test_a_profile_has_the_card_and_the_totals(people: World) -> None:
    for _ in ("from MySQL", "from Redis"):
        assert ask("users.get_user", "api/users") == (
            200,
            {
                "id": "8",
                "nickname": "Ada",
                "avatar": "https://pics.example/old.png",
                "followers": 2,
                "followers_at": ORDER_TOKEN,
                "following": 1,
                "posts": 3,
                "likes_received": 40,
                "collects_received": 5,
                "mine": {"following": True, "blocked": False},
                "reactions": {"follow": {"total": 2, "at": ORDER_TOKEN, "mine": True}},
                "exact": True,
            },
        )


def test_mine_is_null_without_a_session_and_in_ones_own_profile(people: World) -> None:
    status, profile = ask("users.get_user_without_session", "api/users")
    assert (status, profile["nickname"], profile["mine"]) == (200, "Ada", None)
    status, profile = ask("users.get_my_profile", "api/users")
    assert (status, profile["id"], profile["nickname"], profile["mine"]) == (200, "7", "me", None)


def test_users_me_needs_a_session(people: World) -> None:
    request = event("users.get_my_profile")
    del request["headers"]["authorization"]
    assert handler("api/users")(request, None)["statusCode"] == 401


def test_followers_are_the_current_count_of_the_gate(people: World) -> None:
    profiles.read_profile(ADA, ME)
    react.react(FOLLOW, ADAS, ME, False)
    profile = profiles.read_profile(ADA, ME)
    assert (profile.followers, profile.following) == (1, False)


def test_a_hydrated_profile_costs_two_round_trips_and_no_statement(people: World) -> None:
    profiles.read_profile(ADA, ME)
    clear_caches()  # as in another process
    before = statements()
    with count_round_trips() as counter:
        profiles.read_profile(ADA, ME)
    assert (counter.sent, statements() - before) == (2, 1)


def test_a_missing_user_is_read_from_mysql_once(people: World) -> None:
    for _ in range(2):
        with pytest.raises(TargetMissing):
            profiles.read_profile(MISSING, ME)
    before = statements()
    with pytest.raises(TargetMissing):
        profiles.read_profile(MISSING, ME)
    assert statements() - before == 1
    assert not redis.execute("EXISTS", keys(Target("user", MISSING), FOLLOW).meta), (
        "its totals are not hydrated"
    )


def test_while_redis_is_down_profiles_come_from_mysql_and_are_not_exact(
    people: World, redis_away: Away
) -> None:
    with redis_away():
        profile = profiles.read_profile(ADA, ME)
        assert (profile.exact, profile.followers, profile.following) == (False, 2, True)
        assert (profile.card.nickname, profile.totals.posts_total) == ("Ada", 3)
        with pytest.raises(UserMissing):
            profiles.read_profile(MISSING, None)


def test_reads_of_mysql_in_place_of_redis_take_from_the_fallback_budget(
    people: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(0.001, 1))
    with redis_away():
        profiles.read_profile(ADA, ME)
        before = statements()
        with pytest.raises(RedisDown):
            profiles.read_profile(ADA, ME)
        assert statements() - before == 1, "refused before any statement"


def test_while_mysql_is_down_a_hydrated_profile_is_readable(
    people: World, mysql_away: Away
) -> None:
    profiles.read_profile(ADA, ME)
    with mysql_away():
        assert profiles.read_profile(ADA, ME).card.nickname == "Ada"


# ---------------------------------------------------------------- cards


def test_many_cards_cost_one_round_trip_and_only_missing_ones_a_statement(
    people: World,
) -> None:
    cards.read_cards([ME])
    before = statements()
    with count_round_trips() as counter:
        result = cards.read_cards([ADA, ME, MISSING, ADA, 9])
    assert result == {
        ME: Card(ME, "me", None),
        ADA: Card(ADA, "Ada", "https://pics.example/old.png"),
        9: Card(9, "Bo", None),
    }
    # A node of a cluster may not have the script.
    assert (counter.sent, statements() - before) == (3 if IS_CLUSTER else 2, 2)
    with count_round_trips() as counter:
        assert cards.read_cards([9, ADA, ME]) == result
    assert counter.sent == 1
    with count_round_trips() as counter:
        assert cards.read_cards([]) == {}
    assert counter.sent == 0


def test_cards_come_from_mysql_while_redis_is_down(people: World, redis_away: Away) -> None:
    with redis_away():
        assert read_card() == ("Ada", "https://pics.example/old.png")


@pytest.mark.parametrize("nickname", ["王小明", "O'Neil; DROP", '"q"', "🦊\u200d🔥", "a\\b"])
def test_a_nickname_of_any_characters_survives_storage(people: World, nickname: str) -> None:
    profiles.change_profile(ADA, {"nickname": nickname})
    assert read_card()[0] == nickname
    redis.execute("FLUSHALL")
    assert [read_card()[0] for _ in range(2)] == [nickname, nickname]


# ---------------------------------------------------------------- changing


def test_a_changed_profile_is_stored_and_projected(people: World) -> None:
    cards.read_cards([ME])
    status, profile = ask("users.update_my_profile", "api/users")
    assert (status, profile["nickname"], profile["avatar"]) == (200, "Ada", PICTURE)
    assert (profile["id"], profile["following"], profile["mine"]) == ("7", 1, None)
    assert read_card(ME) == ("Ada", PICTURE)
    assert in_mysql(ME) == ("Ada", PICTURE, "user", 2)
    assert [json.loads(m) for m in people.queues.messages[REFRESHES]] == [{"type": "user", "id": 7}]


def change(**body: Any) -> tuple[int, dict[str, Any]]:
    """PATCH /users/me by user 8."""
    request = event("users.update_my_profile")
    request["headers"] |= authorization(ADA)
    response = handler("api/users")(request | {"body": json.dumps(body)}, None)
    return response["statusCode"], json.loads(response["body"])


def test_fields_that_are_not_sent_stay_and_null_removes_the_avatar(people: World) -> None:
    assert change(nickname="  Ada Lovelace ")[0] == 200
    assert in_mysql()[:2] == ("Ada Lovelace", "https://pics.example/old.png")
    assert change(avatar=None)[1]["avatar"] is None
    assert in_mysql()[:2] == ("Ada Lovelace", None)
    assert change(avatar=PICTURE, nickname="x" * 40)[0] == 200
    assert read_card() == ("x" * 40, PICTURE)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"role": "admin"},
        {"nickname": "Ada", "role": "admin"},
        {"nickname": "\ud800"},
        {"avatar": "http://pics.example/a.png"},
    ],
    ids=ascii,
)
def test_an_invalid_change_is_rejected_and_changes_nothing(
    people: World, body: dict[str, Any]
) -> None:
    status, problem = change(**body)
    assert (status, problem["type"].rpartition("/")[2]) == (400, "invalid-request")
    assert in_mysql() == ("Ada", "https://pics.example/old.png", "user", 1)


def test_a_role_in_a_profile_change_is_rejected(people: World) -> None:
    status, problem = ask("users.update_my_profile_role", "api/users")
    assert status == 400
    assert [error["field"] for error in problem["errors"]] == ["body.role"]
    assert in_mysql(ME)[2] == "user"


def test_changing_a_deleted_user_is_404(people: World) -> None:
    mysql.write("DELETE FROM user WHERE id = 8")
    assert change(nickname="Ghost")[0] == 404


def test_the_announcement_projects_a_change_that_redis_missed(
    people: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a change whose projection failed after the commit."""
    cards.read_cards([ADA])

    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "store_cards", failing(RedisDown("down, simulated by a test")))
        assert profiles.change_profile(ADA, {"nickname": "Countess"}).card.nickname == "Countess"
    assert read_card()[0] == "Ada", "Redis has the old card"
    people.queues.drain()
    assert read_card()[0] == "Countess"


def test_a_change_needs_no_queue_and_no_redis(people: World, redis_away: Away) -> None:
    people.queues.away = True
    assert profiles.change_profile(ADA, {"nickname": "A"}).card.nickname == "A"
    assert read_card()[0] == "A"
    with redis_away():
        profile = profiles.change_profile(ADA, {"nickname": "B"})
        assert (profile.card.nickname, profile.exact) == ("B", False)
    assert read_card()[0] == "B"


@pytest.mark.parametrize("warm", [True, False], ids=["in Redis", "not in Redis"])
def test_a_card_read_before_a_change_does_not_overwrite_the_new_card(
    people: World, warm: bool
) -> None:
    if warm:
        cards.read_cards([ADA])
    read = mysql_users.read_cards([ADA])
    profiles.change_profile(ADA, {"nickname": "new"})
    redis_store.store_cards(read, create=True)
    assert read_card()[0] == "new"


def test_the_later_of_two_changes_stays_in_redis_in_any_order(people: World) -> None:
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
    assert read_card()[0] == "2"


def test_a_change_to_the_same_values_raises_the_version(people: World) -> None:
    for _ in range(2):
        assert change(nickname="Ada", avatar="https://pics.example/old.png")[0] == 200
    assert in_mysql() == ("Ada", "https://pics.example/old.png", "user", 3)


def test_the_totals_of_a_profile_change_when_reactions_are_stored(people: World) -> None:
    assert profiles.read_profile(ME, None).totals.following_total == 1
    react.react(FOLLOW, Target("user", 9), ME, True)
    assert profiles.read_profile(ME, None).totals.following_total == 1, "not stored yet"
    people.queues.drain()
    assert profiles.read_profile(ME, None).totals.following_total == 2
    assert counters.read_users([ME])[ME].following_total == 2
