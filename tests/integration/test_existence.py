"""Whether a target is there is checked, also when Redis holds a total of it."""

from __future__ import annotations

import pytest

from plaza import reactions
from plaza.infra import mysql
from plaza.reactions import LIKE, Target
from plaza.reactions.reactions import TargetGone, TargetMissing
from tests.integration.looking import POST, counter
from tests.plaza import World


def test_what_was_counted_is_not_thereby_there(plaza: World) -> None:
    nowhere = Target("post", 404)
    reactions.count([(LIKE, nowhere)], 7)
    with pytest.raises(TargetMissing):
        reactions.react(LIKE, nowhere, 7, True)
    plaza.queues.drain()
    assert counter(nowhere) is None


def test_what_was_deleted_and_then_counted_is_gone_still(plaza: World) -> None:
    plaza.add(POST)
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    reactions.count([(LIKE, POST)], 7)
    with pytest.raises(TargetGone):
        reactions.react(LIKE, POST, 7, True)
