"""The commands that delete many keys."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from plaza.infra.redis import redis

KEYS = ["{1}:a", "{2}:a", "{1}:b", "{12}:a"]


def deletions(monkeypatch: pytest.MonkeyPatch, cluster: bool) -> Sequence[tuple[object, ...]]:
    monkeypatch.setattr(redis, "settings", lambda: SimpleNamespace(redis_cluster=cluster))
    assert redis.delete_commands([]) == []
    return redis.delete_commands(iter(KEYS))


def test_a_single_redis_deletes_all_keys_with_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert deletions(monkeypatch, cluster=False) == [("UNLINK", *KEYS)]


def test_a_cluster_deletes_keys_with_one_command_per_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    assert deletions(monkeypatch, cluster=True) == [
        ("UNLINK", "{1}:a", "{1}:b"),
        ("UNLINK", "{2}:a"),
        ("UNLINK", "{12}:a"),
    ]
