"""What is in transit on a stack, while messages move between its queues and stores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from local.audit import backlog


def test_a_message_that_moves_while_it_is_counted_is_in_transit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a message that is sent to a queue after this queue was counted."""
    counts = iter([{"orders": (0, 0), "webhooks": (0, 0)}, {"orders": (1, 0), "webhooks": (0, 0)}])
    monkeypatch.setattr(backlog, "count_messages", lambda stack: next(counts))
    monkeypatch.setattr(backlog, "connect_redis", mock.MagicMock())
    monkeypatch.setattr(backlog, "count_pending", lambda client: (0, 0))
    monkeypatch.setattr(backlog, "count_spilled", lambda url: 0)
    stack: Any = SimpleNamespace(redis_url="", redis_cluster=False, mysql_url="")
    assert backlog.read_backlog(stack) == (0, 0, 1, 0, 0)


def test_messages_of_dlqs_are_in_no_transit(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"orders": (2, 1), "orders_dlq": (5, 5), "webhooks": (0, 4)}
    monkeypatch.setattr(backlog, "count_messages", lambda stack: counts)
    stack: Any = SimpleNamespace()
    assert backlog.sum_messages(stack) == (2, 5)
