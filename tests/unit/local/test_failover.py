"""What a failover is played with when there is no file."""

from __future__ import annotations

from collections import defaultdict

from local.load.failover import TOGGLED_POSTS, TOGGLERS, make_toggles
from local.load.interactions import plan
from local.load.requests import Reaction, foresee


def test_toggles_want_the_contrary_of_the_same_likes_each_time() -> None:
    requests = plan(make_toggles(3 * TOGGLERS * TOGGLED_POSTS))
    wishes: dict[Reaction, list[bool]] = defaultdict(list)
    for request in requests:
        assert request.turns
        wishes[request.turns[0]].append(request.turns[1])
    assert len(wishes) == TOGGLERS * TOGGLED_POSTS
    assert all(wants == [True, False, True] for wants in wishes.values())
    forecasts, after = foresee(requests, set())
    assert all(forecast.changes for forecast in forecasts)
    assert len(after) == len(wishes)
