"""Files of follows: rows, requests, expectations and comparison."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from cli.paths import CommandError
from local.load import interactions
from local.load.follows import (
    FILES,
    ApiState,
    Follow,
    Follows,
    choose_pairs,
    choose_viewers,
    find_differences,
    plan,
    sum_up,
)
from local.load.interactions import Interaction, Interactions
from local.load.replay import Options, read_scenario
from local.load.requests import Call, Copies, Expectation, predict, set_reaction
from local.load.scenario import rank_ids

HEADER = "follower_id,followee_id"
FOLLOW = set_reaction(Follow(1, 7).reaction)
CHANGES, STAYS = (Expectation(changes, {"following": True}) for changes in (True, False))
DONE = {"following": True, "followers": 1, "changed": True, "exact": True}
AGAIN = {**DONE, "changed": False}
AFTER = {Follow(1, 7), Follow(2, 7), Follow(1, 8), Follow(2, 8), Follow(7, 1)}
SEEN = ApiState(
    follower_totals={1: 1, 2: 0, 7: 2, 8: 2},
    following_totals={1: 2, 2: 2, 7: 1, 8: 0},
    followers={7: [2, 1]},
    following={7: [1], 1: [7, 8]},
    common_follows={(1, 2): [8, 7], (1, 7): []},
)


def test_line_is_a_follow() -> None:
    assert list(FILES.parse([HEADER, "30,1412", "", "3,28"], "f.csv")) == [
        Follow(30, 1412),
        Follow(3, 28),
    ]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("1", "1 columns, not 2"),
        ("1,2,3", "3 columns, not 2"),
        ("x,2", "follower_id is 'x'"),
        ("1,0", "followee_id is '0'"),
        ("1,9223372036854775808", "followee_id is '9223372036854775808'"),
        ("7,7", "user 7 follows themself"),
    ],
)
def test_bad_line_is_reported_with_its_error(line: str, named: str) -> None:
    with pytest.raises(CommandError) as error:
        list(FILES.parse([HEADER, "1,2", line], "f.csv"))
    assert str(error.value).startswith("f.csv, line 3: ")
    assert named in str(error.value)


def test_written_rows_are_read_back(tmp_path: Path) -> None:
    follows = [Follow(1, 2**63 - 1), Follow(3, 4)]
    FILES.write(tmp_path / "f.csv", follows)
    assert FILES.read(tmp_path / "f.csv") == follows
    assert FILES.read(tmp_path / "f.csv", limit=1) == follows[:1]


def test_header_determines_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "follows.csv.gz"
    path.write_bytes(gzip.compress(f"{HEADER}\n1,2\n2,3\n".encode()))
    scenario = read_scenario(path, Options())
    assert isinstance(scenario, Follows)
    assert (len(scenario.requests), scenario.user_ids) == (2, [1, 2, 3])
    assert read_scenario(path, Options(), limit=1).user_ids == [1, 2]

    interactions.FILES.write(path, [Interaction(1, 2, 5.0, 0)])
    assert isinstance(read_scenario(path, Options()), Interactions)


@pytest.mark.parametrize("header", ["", "follower_id", "followee_id,follower_id", "1,2"])
def test_wrong_header_is_reported(tmp_path: Path, header: str) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"{header}\n1,2\n")
    with pytest.raises(CommandError, match=r"f\.csv, line 1: .*rating,timestamp or follower_id,"):
        read_scenario(path, Options())


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        read_scenario(tmp_path / "nowhere.csv", Options())


def test_row_is_a_request() -> None:
    (request,) = plan([Follow(3, 28)])
    assert request.call == Call("PUT", "/users/28/followers/me")
    assert (request.user_id, request.act, str(request)) == (
        3,
        "follow",
        "follow of user 28 by user 3",
    )


def test_share_of_requests_is_sent_twice_deterministically() -> None:
    follows = [Follow(1, id_) for id_ in range(2, 5002)]
    requests = plan(follows, duplicates=0.2, seed=3)
    copies = Counter(request.copies for request in requests)
    assert copies[Copies.ONE] == pytest.approx(4000, rel=0.03)
    assert copies[Copies.AT_ONCE] == pytest.approx(copies[Copies.IN_A_ROW], rel=0.2)
    assert requests == plan(follows, duplicates=0.2, seed=3)
    assert requests != plan(follows, duplicates=0.2, seed=4)


def test_end_state_follows_from_start_and_requests() -> None:
    before = {Follow(1, 7).reaction, Follow(5, 7).reaction}
    requests = plan([Follow(1, 7), Follow(1, 8), Follow(1, 8)])
    expectations, after = predict(requests, before)
    assert expectations == [STAYS, CHANGES, STAYS]
    assert after == before | {Follow(1, 8).reaction}


def test_correct_answer_has_no_error() -> None:
    assert CHANGES.find_wrong(FOLLOW, [DONE], True) == []
    assert CHANGES.find_wrong(FOLLOW, [AGAIN, DONE], True) == []
    assert STAYS.find_wrong(FOLLOW, [AGAIN, AGAIN], True) == []


def test_follow_counted_twice_or_never_is_found() -> None:
    assert CHANGES.find_wrong(FOLLOW, [DONE, DONE], True) == [
        "follow of user 7 by user 1: changed 2 times, not 1"
    ]
    assert CHANGES.find_wrong(FOLLOW, [AGAIN], True) == [
        "follow of user 7 by user 1: changed 0 times, not 1"
    ]
    assert CHANGES.find_wrong(FOLLOW, [AGAIN], False) == []


def test_answer_must_have_the_state_of_the_follow() -> None:
    assert CHANGES.find_wrong(FOLLOW, [{**DONE, "following": False}], False) == [
        "follow of user 7 by user 1: following is False"
    ]


def test_equal_states_have_no_difference() -> None:
    assert find_differences(AFTER, AFTER, SEEN) == []
    assert sum_up(AFTER, AFTER, SEEN) == {
        "followers": (5, 5, 5),
        "following": (5, 5, 5),
        "common_follows": (2, 2, 2),
    }


def test_rows_are_compared_follow_by_follow() -> None:
    rows = AFTER - {Follow(1, 7)} | {Follow(8, 7)}
    assert find_differences(AFTER, rows, SEEN) == [
        "follow of user 7 by user 8 is in the rows, not in the file",
        "follow of user 7 by user 1 is in the file, not in the rows",
    ]
    sums = sum_up(AFTER, rows | {Follow(8, 1)}, SEEN)
    assert (sums["followers"], sums["common_follows"]) == ((5, 6, 5), (2, 1, 2))


@pytest.mark.parametrize(
    ("reported", "difference"),
    [
        (ApiState(follower_totals={7: 3}), "user 7 has 3 followers by the API, 2 by the file"),
        (ApiState(following_totals={7: 0}), "user 7 has 0 following by the API, 1 by the file"),
        (ApiState(follower_totals={9: 1}), "user 9 has 1 followers by the API, 0 by the file"),
    ],
)
def test_totals_of_the_api_are_compared(reported: ApiState, difference: str) -> None:
    assert find_differences(AFTER, AFTER, reported) == [difference]


@pytest.mark.parametrize("ids", [[], [1], [1, 2, 2], [1, 2, 3]])
def test_lists_of_the_api_are_compared(ids: list[int]) -> None:
    (followers,) = find_differences(AFTER, AFTER, ApiState(followers={7: ids}))
    assert followers.startswith("followers of user 7 by the API are wrong")
    (following,) = find_differences(AFTER, AFTER, ApiState(following={2: ids}))
    assert following.startswith("following of user 2 by the API are wrong")
    (common,) = find_differences(AFTER, AFTER, ApiState(common_follows={(2, 1): ids}))
    assert common.startswith("follows that users 2 and 1 have in common by the API are wrong")


def test_most_frequent_ids_come_first() -> None:
    follows = [Follow(1, 5), Follow(2, 5), Follow(1, 6), Follow(1, 7), Follow(2, 7)]
    assert rank_ids((follow.followee_id for follow in follows), 2) == [5, 7]


def test_pairs_are_deterministic_and_half_share_a_followee() -> None:
    # each user follows another followee; users 100 to 139 also follow user 1
    follows = {Follow(id_, id_ + 1000) for id_ in range(100, 500)}
    follows |= {Follow(id_, 1) for id_ in range(100, 140)}
    pairs = choose_pairs(follows, 100, seed=5)
    assert len(set(pairs)) == len(pairs) == 100
    assert all(item != other and {item, other} <= set(range(100, 500)) for item, other in pairs)
    shared = sum(item < 140 and other < 140 for item, other in pairs)
    assert 50 <= shared <= 60
    assert choose_pairs(follows, 100, seed=5) == pairs
    assert choose_pairs(follows, 100, seed=6) != pairs


@pytest.mark.parametrize("follows", [set(), {Follow(1, 2)}])
def test_follower_alone_yields_no_pairs(follows: set[Follow]) -> None:
    assert choose_pairs(follows, 10) == []


def test_there_may_be_fewer_pairs_than_requested() -> None:
    assert sorted(choose_pairs({Follow(1, 3), Follow(2, 3)}, 10)) == [(1, 2), (2, 1)]


def test_viewer_states_are_compared() -> None:
    correct = ApiState(viewer_states={Follow(1, 7): True, Follow(9, 7): False})
    assert find_differences(AFTER, AFTER, correct) == []
    wrong = ApiState(viewer_states={Follow(1, 7): False, Follow(9, 7): True})
    assert find_differences(AFTER, AFTER, wrong) == [
        "follow of user 7 by user 1 is off by the API",
        "follow of user 7 by user 9 is on by the API",
    ]


def test_viewers_are_half_followers_and_never_the_followee() -> None:
    follows = [Follow(user_id, 7) for user_id in range(1, 7)]
    asked = choose_viewers(follows, range(1, 21), [7], 4)
    fans = [user_id for user_id, followee_id in asked if Follow(user_id, followee_id) in follows]
    assert (len(asked), len(fans)) == (8, 4)
    assert all(user_id != 7 for user_id, _ in asked)
    assert asked == choose_viewers(follows, range(1, 21), [7], 4)
