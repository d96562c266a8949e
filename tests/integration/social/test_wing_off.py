"""A deployment without the wing social: follows count, and no queue without a consumer gets
messages."""

from __future__ import annotations

import pytest

from plaza.core import counters
from plaza.core.reactions import FOLLOW, Target, persist
from plaza.core.reactions.queues import FOLLOWS
from tests.support.consumers import make_event
from tests.support.plaza import World
from tests.support.stores import add_users
from tests.support.wings import without


@pytest.mark.parametrize(("left_out", "messages"), [("commerce", 1), ("social", 0)])
def test_follows_are_sent_to_feeds_only(plaza: World, left_out: str, messages: int) -> None:
    add_users(7, 8)
    with without(left_out):
        persist.save([make_event(7, target=Target("user", 8), kind=FOLLOW)])
    assert len(plaza.queues.messages[FOLLOWS]) == messages
    assert counters.read_users([8])[8].followers_total == 1
