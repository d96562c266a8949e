"""All interactions of a file, with repeated and late events: rankings in the order of MySQL.

PLAZA_INTERACTIONS is a file in the format of `replay`, instead of generated interactions:

    PLAZA_INTERACTIONS=../shared/data/interactions.csv.gz \\
        python -m pytest -q tests/integration/social/recommendations/test_rankings_of_a_file.py
"""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from pathlib import Path

import pytest

from local.load.demo import make_interactions
from local.load.interactions import FILES, plan
from plaza.core.reactions import KINDS, Target, persist, react
from plaza.core.reactions.model import TooManyChanges
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.mysql import mysql
from plaza.social.recommendations import like_roll_up, post_rankings
from tests.integration.social.recommendations.test_rankings import a_full_bucket, in_redis, ranked
from tests.support.likes_log import HOUR_US, most_liked, window_in_log
from tests.support.plaza import World, read_event

__all__ = ["a_full_bucket"]  # an imported fixture

FILE = os.environ.get("PLAZA_INTERACTIONS")
BATCH = 1_000


@pytest.mark.deep
def test_rankings_have_the_order_of_mysql_after_all_interactions_of_a_file(
    plaza: World,
) -> None:
    rows = FILES.read(Path(FILE)) if FILE else make_interactions(60, 120, 3_000, first_id=1, seed=5)
    requests, rng = plan(rows), random.Random(6)
    posts = sorted({row.item_id for row in rows})
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id) VALUES "
        + ",".join(f"('post', {post_id}, 99)" for post_id in posts)
    )
    late: list[str] = []
    for number, request in enumerate(requests, 1):
        if request.sets:
            (kind, post_id, user_id), on = request.sets
            with suppress(TooManyChanges):
                react.react(KINDS[kind], Target("post", post_id), user_id, on)
        if number % BATCH == 0 or number == len(requests):
            bodies = late + plaza.queues.take(REACTIONS)
            rng.shuffle(bodies)
            late = [] if number == len(requests) else bodies[: len(bodies) // 10]
            repeated = bodies[: len(bodies) // 5]  # some arrive late, some twice
            batch = [read_event(body) for body in bodies[len(late) :] + repeated]
            if batch:
                persist.save(batch)
            if rng.random() < 0.1:
                like_roll_up.roll_up_likes()
    plaza.queues.drain()
    like_roll_up.roll_up_likes()

    expected = most_liked()
    assert in_redis()[: len(expected)] == expected, "before a refresh"
    post_rankings.refresh_rankings()
    assert ranked("all") == expected
    hour = time.time_ns() // 1000 // HOUR_US
    for window, hours in (("day", 24), ("week", 168)):
        in_log = window_in_log(hour - hours + 1, hour)[:1_000]
        assert ranked(window) == in_log  # type: ignore[arg-type]
    counted = mysql.fetch_all(
        "SELECT COUNT(*) FROM reaction WHERE target_type = 'post' AND kind = 'like' AND state = 1"
    )
    assert counted[0][0] >= sum(likes for likes, _ in expected) > 300
