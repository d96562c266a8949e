"""URLs of several nodes of a cluster."""

from __future__ import annotations

import pytest

from plaza.infra.redis.cluster import spread_url


@pytest.mark.parametrize(
    ("url", "nodes"),
    [
        ("redis://a:1/0", ["redis://a:1/0"]),
        ("redis://a:1,b:2,c", ["redis://a:1", "redis://b:2", "redis://c"]),
        ("rediss://u:p%40@a:1,b:2/0", ["rediss://u:p%40@a:1/0", "rediss://u:p%40@b:2/0"]),
    ],
)
def test_a_url_of_several_nodes_is_split_into_one_per_node(url: str, nodes: list[str]) -> None:
    assert spread_url(url) == nodes
