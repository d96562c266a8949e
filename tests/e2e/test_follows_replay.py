"""Follows through the deployed stack, at their worst, and then the file, the lists and the audit.

Commands run as people run them, in processes of their own.
"""

import json
import random
from pathlib import Path

import pytest

from local.load.follows import FILES, Follow
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from tests.e2e.test_replay import empty_dlqs, replay, run

__all__ = ["empty_dlqs"]  # a fixture that is used here too

pytestmark = pytest.mark.slow

FIRST_ID = 8_100_001
PEOPLE = 60


def make_follows(count: int, seed: int) -> list[Follow]:
    """Follows among some people, half of them of the three whom everybody wants to follow."""
    chance = random.Random(seed)
    ids = range(FIRST_ID, FIRST_ID + PEOPLE)
    follows: dict[Follow, None] = {}
    while len(follows) < count:
        one = chance.choice(ids)
        other = chance.choice(ids[:3] if chance.random() < 0.5 else ids)
        if one != other:
            follows[Follow(one, other)] = None
    return list(follows)


def test_follows_with_duplicates_and_killed_consumers_end_as_the_file_says(
    stack: Stack, tmp_path: Path
) -> None:
    path = tmp_path / "follows.csv"
    FILES.write(path, make_follows(330, seed=3))
    # 40 a second: slow enough for some consumers to die
    options = ("--duplicates", "0.2", "--kill-consumers", "--rate", "40", "--limit", "300")

    report = replay(stack, path, *options)

    assert report["killed"] >= 1
    assert report["duplicates"] > 30
    assert report["changed"] == report["expected"] == report["persisted"] == 300
    assert report["totals"]["followers"] == {"file": 300, "rows": 300, "api": 300}
    assert report["totals"]["following"] == {"file": 300, "rows": 300, "api": 300}
    common = report["totals"]["common_follows"]
    assert common["file"] == common["rows"] == common["api"] > 100
    assert (report["wrong"], report["failures"], report["differences"]) == ([], [], [])

    again = replay(stack, path)  # what is there already is where it begins
    assert again["changed"] == again["expected"] == 30
    assert again["totals"]["followers"] == {"file": 330, "rows": 330, "api": 330}

    status, said = run(stack, "audit", "--json")
    audit = json.loads(said)
    assert (status, audit["clean"], audit["drift"], audit["differences"]) == (0, True, 0, [])
    for name in ("followers", "following"):
        sums = audit["counters"][name]
        assert sums["rows"] == sums["counters"] >= 330
        assert sums["hot"] == sums["hot_counters"] > 0


def test_an_audit_finds_followers_that_somebody_moved(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    user_id = 8_200_001
    FILES.write(path, [Follow(user_id + 1, user_id)])
    replay(stack, path)
    with connect_mysql(stack.mysql_url) as connection, connection.cursor() as cursor:
        move = "UPDATE user_counter SET followers_total = followers_total + %s WHERE user_id = %s"
        cursor.execute(move, (1, user_id))
        connection.commit()
        try:
            status, said = run(stack, "audit", "--json")
        finally:
            cursor.execute(move, (-1, user_id))
            connection.commit()
    audit = json.loads(said)
    assert (status, audit["clean"], audit["drift"]) == (1, False, 1)
    assert f"followers of user {user_id}: counter 2, rows 1" in audit["differences"]


def test_a_follow_of_oneself_is_refused_by_its_line(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text("follower_id,followee_id\n1,2\n7,7\n")
    assert run(stack, "replay", str(path)) == (
        1,
        "plaza: bad.csv, line 3: user 7 follows themself\n",
    )
