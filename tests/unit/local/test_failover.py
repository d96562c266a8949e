"""The toggles of a failover without a file."""

from __future__ import annotations

from collections import defaultdict

from local.load.failover import TOGGLED_POSTS, TOGGLERS, make_toggles
from local.load.interactions import plan
from local.load.requests import Reaction, predict


def test_toggles_alternate_the_same_likes() -> None:
    requests = plan(make_toggles(3 * TOGGLERS * TOGGLED_POSTS))
    states: dict[Reaction, list[bool]] = defaultdict(list)
    for request in requests:
        assert request.sets
        states[request.sets[0]].append(request.sets[1])
    assert len(states) == TOGGLERS * TOGGLED_POSTS
    assert all(sent == [True, False, True] for sent in states.values())
    expectations, after = predict(requests, set())
    assert all(expectation.changes for expectation in expectations)
    assert len(after) == len(states)
