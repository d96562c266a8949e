"""Compare the API's rankings of posts with the order by rows, or by the log of a window."""

import time
from collections.abc import Sequence
from contextlib import closing

from local.load.api_reader import ApiReader
from local.stack.servers import connect_mysql
from local.stack.stack import Stack

SHOWN = 1_000
HOT_HALF_LIFE_H = 12  # the default of the template
HOURS = {"hot": 120, "day": 24, "week": 7 * 24}
_HOUR_US = 3_600_000_000
_LIVE = "content_type = 'post' AND content_id = post_id AND deleted_at IS NULL"
_OF_ALL_TIME = f"""
    SELECT post_id, likes FROM (SELECT target_id AS post_id, COUNT(*) AS likes FROM reaction
        WHERE target_type = 'post' AND kind = 'like' AND state = 1 GROUP BY target_id) AS liked
    WHERE EXISTS (SELECT 1 FROM content WHERE {_LIVE})
    ORDER BY likes DESC, post_id DESC LIMIT {SHOWN}"""  # noqa: S608
_OF_A_WINDOW = f"""
    SELECT post_id, likes FROM (SELECT target_id AS post_id, SUM(change_by * {{weight}}) AS likes
        FROM reaction_log WHERE target_type = 'post' AND kind = 'like'
        AND create_date >= UTC_DATE() - INTERVAL 8 DAY
        AND version DIV {_HOUR_US} BETWEEN {{first_hour}} AND {{last_hour}}
        GROUP BY target_id HAVING likes > 0) AS liked
    WHERE EXISTS (SELECT 1 FROM content WHERE {_LIVE})
    ORDER BY likes DESC, post_id DESC LIMIT {SHOWN}"""  # noqa: S608

Ranking = Sequence[tuple[int, int]]
"""(post, likes), in descending order of likes."""


async def find_differences(stack: Stack, api: ApiReader) -> tuple[list[str], str]:
    """Refresh all rankings and compare them; return (differences, what was compared).

    Raises CommandError.
    """
    while True:
        last_hour = _current_hour()
        api.on_progress("rankings")
        expected = {"all": _read(stack, _OF_ALL_TIME)}
        for window, hours in HOURS.items():
            expected[window] = _read(
                stack, _select_window(window, last_hour - hours + 1, last_hour)
            )
        _refresh_rankings(stack)
        reported = {window: await _fetch(api, window) for window in expected}
        if _current_hour() == last_hour:  # else a window has moved
            break
    differences = [
        describe_difference(window, order, reported[window]) for window, order in expected.items()
    ]
    sizes = ", ".join(f"{len(order):,} of {window}" for window, order in expected.items())
    return [
        difference for difference in differences if difference
    ], f"rankings, whole and in order: {sizes}"


def _select_window(window: str, first_hour: int, last_hour: int) -> str:
    weight = "1"
    if window == "hot":
        period_h = HOURS["hot"]
        age_h = f"(version DIV {_HOUR_US} - {first_hour // period_h * period_h})"
        doubled = f"CAST(1 << ({age_h} DIV {HOT_HALF_LIFE_H}) AS SIGNED)"
        weight = f"({HOT_HALF_LIFE_H} + {age_h} MOD {HOT_HALF_LIFE_H}) * {doubled}"
    return _OF_A_WINDOW.format(weight=weight, first_hour=first_hour, last_hour=last_hour)


def describe_difference(window: str, expected: Ranking, reported: Ranking) -> str | None:
    """Describe the first rank at which both rankings differ; None if they are equal."""
    for rank, (right, shown) in enumerate(zip(expected, reported, strict=False), start=1):
        if right != shown:
            return "ranking of {}: rank {} is post {} with {}, not post {} with {}".format(
                window, rank, *shown, *right
            )
    if len(expected) != len(reported):
        return f"ranking of {window} has {len(reported)} posts, not {len(expected)}"
    return None


def _refresh_rankings(stack: Stack) -> None:
    """Invoke the schedules that update rankings."""
    before, reached = -1, 0
    while before < reached:  # a run stops after a minute; the next one resumes
        before, reached = reached, stack.invoke("RollUpLikes", {})["rolled_up_to"]
    stack.invoke("RefreshRankings", {})


async def _fetch(api: ApiReader, window: str) -> Ranking:
    items = await api.read_list(f"/posts/ranking?window={window}")
    return [(int(item["id"]), item["score"]) for item in items]


def _read(stack: Stack, statement: str) -> Ranking:
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return [(post_id, int(likes)) for post_id, likes in cursor]


def _current_hour() -> int:
    return time.time_ns() // 1000 // _HOUR_US
