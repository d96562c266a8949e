"""Fixtures of the content tests."""

from __future__ import annotations

import pytest

from tests.support.content_api import add_shop, add_users
from tests.support.plaza import World


@pytest.fixture
def world(plaza: World) -> World:
    """Two users and a shop."""
    add_users(7, 8)
    add_shop()
    return plaza
