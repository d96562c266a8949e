"""Messages keep their encoding: each version of Plaza decodes what the previous one has sent.

``events/messages`` has the bodies of each queue, one a line, in the order of ``VALUES``.
"""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from local.stack.queue_registry import load_queues
from plaza.commerce.checkins import CheckInEvent
from plaza.commerce.flash_sales import OrderEvent
from plaza.commerce.shops.model import ShopJobStep, ShopRefresh
from plaza.core.reactions import COLLECT, FOLLOW, LIKE, Target
from plaza.core.reactions.model import Commit, ReactionEvent, ReactionKey
from plaza.core.reactions.queues import BloomBuildStep, Unacknowledged
from plaza.core.targets.queues import TargetRefresh
from plaza.infra.derived.cache import CacheDrops
from plaza.infra.queues.announcements import Notice
from plaza.integrations.webhooks.model import DeliveryOutcome, SentEvent, WebhookBatch
from plaza.notifications.push import PushRequest, Subscription
from plaza.notifications.push.model import PushTask
from plaza.operate.reconciliation import ComparePart, RepairFindings
from plaza.operate.warm_up.queues import WarmUpStep
from plaza.social.content.queues import FanOut
from plaza.social.feed.model import INBOX, POSTS, Timeline
from plaza.social.recommendations import RebuildLists
from tests.unit.policy.template import ROOT

QUEUES = load_queues()
FOLDER = ROOT / "events" / "messages"
MAX_ID = 2**63 - 1
MAX_VERSION = 2**53 - 1
AT_US = 1_743_760_800_000_000
RESERVED = [OrderEvent(101, 5, 7, 1), OrderEvent(MAX_ID, MAX_ID, MAX_ID, MAX_VERSION)]

VALUES: dict[str, list[Any]] = {
    "webhooks": [
        WebhookBatch(
            MAX_ID,
            2,
            "https://example.com/plaza",
            (3, 2),
            (SentEvent("like_added_post_11_7_1", '{"id":"a"}', 7, 3),),
            (8, 3, 1_743_760_800),
            1_743_761_040,
        ),
    ],
    "deliveries": [
        DeliveryOutcome(MAX_ID, 2, 1, (8, 3, 1_743_760_800), None),
        DeliveryOutcome(MAX_ID, 2, 1, (7, 3, None), "HTTP 503"),
        DeliveryOutcome(MAX_ID, 2, 0, None, "TimeoutError"),
    ],
    "reactions": [
        ReactionEvent(ReactionKey("post", 11, "like", 7), True, AT_US),
        ReactionEvent(ReactionKey("post", 11, "collect", 7), False, AT_US),
        ReactionEvent(ReactionKey("user", MAX_ID, "follow", MAX_ID), True, MAX_VERSION),
        ReactionEvent(ReactionKey("comment", 12, "like", 7), True, None),
        ReactionEvent(ReactionKey("comment", 12, "like", 7), True, None, deadline_ms=AT_US // 1000),
    ],
    "acknowledgements": [
        Unacknowledged(
            [
                Commit(LIKE, Target("post", 11), 2**40 + 3, 2, True, [(7, AT_US, True)]),
                Commit(FOLLOW, Target("user", 9), 4, 0, False, [(7, AT_US, False), (8, 0, False)]),
            ],
            [],
        ),
        Unacknowledged(
            [], [ReactionKey("post", 11, "like", 7), ReactionKey("user", 9, "follow", MAX_ID)]
        ),
    ],
    "rebuilds": [
        BloomBuildStep(LIKE, Target("post", 11), "", 0),
        BloomBuildStep(COLLECT, Target("post", 11), "5f2c", 250),
    ],
    "refreshes": [TargetRefresh("post", 11), TargetRefresh("user", MAX_ID)],
    "fanouts": [FanOut(11), FanOut(11, 102), FanOut(MAX_ID, 102, announce=True)],
    "follows": [[(7, 9)], [(7, 9), (8, MAX_ID)]],
    "inboxes": [[Timeline(INBOX, 7)], [Timeline(POSTS, 9), Timeline(POSTS, MAX_ID)]],
    "warm_ups": [
        WarmUpStep(AT_US),
        WarmUpStep(AT_US, "recommendations"),
        WarmUpStep(
            AT_US, "targets", ((LIKE, Target("post", 11)), (FOLLOW, Target("user", MAX_ID)))
        ),
    ],
    "pushes": [
        PushTask(users=(7, MAX_ID)),
        PushTask(notices=(Notice("order", 7, 71), Notice("report", 8, MAX_ID))),
        PushTask(ended=((7, bytes(32)),)),
    ],
    "push_requests": [
        PushRequest(
            7,
            Subscription("https://fcm.googleapis.com/fcm/send/d1", "B" + "A" * 86, "A" * 22),
            "A" * 32,
            '{"kind":"like"}',
            AT_US // 1_000_000,
        )
    ],
    "recommendations": [RebuildLists([5]), RebuildLists([5, MAX_ID])],
    "orders": RESERVED,
    "orders_dlq": RESERVED,
    "shops": [
        ShopRefresh([5, MAX_ID]),
        ShopRefresh([]),
        ShopJobStep("filter"),
        ShopJobStep("places", "5f2c", 77),
        ShopJobStep("everything", after_id=7),
    ],
    "drops": [CacheDrops({"{31}:shop:5:page": 2, "{1}:shop:6:page": 2**53})],
    "checkins": [CheckInEvent(7, date(2025, 4, 4), AT_US)],
    "comparisons": [ComparePart(1, "targets:post"), ComparePart(MAX_ID, "filter:like:post:11")],
    "repairs": [RepairFindings((1,)), RepairFindings((2, MAX_ID))],
}

OLDER: dict[str, dict[str, Any]] = {
    "fanouts": {'{"post_id":11,"after_id":102,"announce":false}': FanOut(11, 102)},
}
"""Bodies of earlier versions, which wrote fields that are left out now."""


def test_every_queue_has_pinned_messages() -> None:
    assert {file.name for file in FOLDER.iterdir()} == {f"{queue}.jsonl" for queue in QUEUES}
    assert set(VALUES) == set(QUEUES)


@pytest.mark.parametrize("queue", sorted(QUEUES))
def test_a_message_is_encoded_to_the_pinned_bytes_and_decoded_from_them(queue: str) -> None:
    bodies = [QUEUES[queue].encode(value) for value in VALUES[queue]]
    assert "".join(f"{body}\n" for body in bodies).encode() == pinned(queue)
    assert [QUEUES[queue].decode(body) for body in bodies] == VALUES[queue]


@pytest.mark.parametrize("queue", sorted(OLDER))
def test_a_message_of_an_earlier_version_is_decoded(queue: str) -> None:
    for body, value in OLDER[queue].items():
        assert QUEUES[queue].decode(body) == value


@pytest.mark.parametrize("queue", sorted(QUEUES))
def test_a_field_that_a_later_version_adds_is_ignored(queue: str) -> None:
    for body, value in zip(pinned(queue).decode().splitlines(), VALUES[queue], strict=True):
        fields = json.loads(body)
        if isinstance(fields, dict):
            assert QUEUES[queue].decode(json.dumps(fields | {"added_later": [1]})) == value


def pinned(queue: str) -> bytes:
    return (FOLDER / f"{queue}.jsonl").read_bytes()
