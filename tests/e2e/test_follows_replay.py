"""A replay of follows with duplicates and killed consumers on the deployed stack, and its audit.

Commands run in processes of their own.
"""

import json
import random
from pathlib import Path

import pytest

from local.load.follows import FILES, Follow
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from tests.e2e.test_replay import empty_dlqs, replay, run
from tests.support.depth import choose

__all__ = ["empty_dlqs"]  # an autouse fixture

pytestmark = pytest.mark.quiet

FIRST_ID = 8_100_001
PEOPLE = 60
FIRST, MORE, RATE, COMMON = choose((120, 20, 40, 10), (300, 30, 60, 100))  # a slow rate, to kill


def make_follows(count: int, seed: int) -> list[Follow]:
    """Return random follows among 60 users, about half of them of the first three."""
    chance = random.Random(seed)
    ids = range(FIRST_ID, FIRST_ID + PEOPLE)
    follows: dict[Follow, None] = {}
    while len(follows) < count:
        item = chance.choice(ids)
        other = chance.choice(ids[:3] if chance.random() < 0.5 else ids)
        if item != other:
            follows[Follow(item, other)] = None
    return list(follows)


@pytest.mark.sampled
def test_a_replay_of_follows_with_duplicates_and_killed_consumers_ends_clean(
    stack: Stack, tmp_path: Path
) -> None:
    path = tmp_path / "follows.csv"
    FILES.write(path, make_follows(FIRST + MORE, seed=3))
    options = ("--duplicates", "0.2", "--kill-consumers", "--rate", str(RATE))

    report = replay(stack, path, *options, "--limit", str(FIRST))

    assert report["killed"] >= 1
    assert report["duplicates"] > FIRST // 10
    assert report["changed"] == report["expected"] == report["persisted"] == FIRST
    all_first = dict.fromkeys(("file", "rows", "api"), FIRST)
    assert report["totals"]["followers"] == all_first
    assert report["totals"]["following"] == all_first
    common = report["totals"]["common_follows"]
    assert common["file"] == common["rows"] == common["api"] > COMMON
    assert (report["wrong"], report["failures"], report["differences"]) == ([], [], [])

    again = replay(stack, path)  # begins with the follows of the first replay
    assert again["changed"] == again["expected"] == MORE
    assert again["totals"]["followers"] == dict.fromkeys(("file", "rows", "api"), FIRST + MORE)

    status, output = run(stack, "audit", "--json", "--wait")
    audit = json.loads(output)
    assert (status, audit["clean"], audit["drift"], audit["differences"]) == (0, True, 0, [])
    for name in ("followers", "following"):
        sums = audit["counters"][name]
        assert sums["rows"] == sums["counters"] >= FIRST + MORE
        assert sums["hot"] == sums["hot_counters"] > 0


def test_an_audit_reports_a_wrong_follower_counter(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    user_id = 8_200_001
    FILES.write(path, [Follow(user_id + 1, user_id)])
    replay(stack, path)
    with connect_mysql(stack.mysql_url) as connection, connection.cursor() as cursor:
        move = "UPDATE user_counter SET followers_total = followers_total + %s WHERE user_id = %s"
        cursor.execute(move, (1, user_id))
        connection.commit()
        try:
            status, output = run(stack, "audit", "--json")
        finally:
            cursor.execute(move, (-1, user_id))
            connection.commit()
    audit = json.loads(output)
    assert (status, audit["clean"], audit["drift"]) == (1, False, 1)
    assert f"followers of user {user_id}: counter 2, rows 1" in audit["differences"]


def test_a_self_follow_is_refused_with_its_line_number(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("follower_id,followee_id\n1,2\n7,7\n")
    assert run(stack, "replay", str(path)) == (
        1,
        "plaza: bad.csv, line 3: user 7 follows themself\n",
    )
