"""What a failover is played with when there is no file."""

from __future__ import annotations

from collections import defaultdict

from local.load.failover import TOGGLED_POSTS, TOGGLERS, make_toggles
from local.load.interactions import Verb, foresee, plan


def test_toggles_want_the_contrary_of_the_same_likes_each_time() -> None:
    requests = plan(make_toggles(3 * TOGGLERS * TOGGLED_POSTS))
    verbs: dict[tuple[int, int], list[Verb]] = defaultdict(list)
    for request in requests:
        verbs[request.user_id, request.item_id].append(request.verb)
    assert len(verbs) == TOGGLERS * TOGGLED_POSTS
    assert all(wants == [Verb.LIKE, Verb.UNLIKE, Verb.LIKE] for wants in verbs.values())
    forecasts, after = foresee(requests, set())
    assert all(forecast.changes for forecast in forecasts)
    assert len(after) == len(verbs)
