"""Read the totals of the targets on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plaza.core import counters
from plaza.core.reactions import Target, queries
from plaza.core.reactions.kinds import BUILT_IN, kinds_of
from plaza.infra.redis.hot_reads import HotReads

MAX_TARGETS = 48  # of the longest ids fit into the longest query that the firewall lets pass
MAX_LOADED = 10  # targets that one request loads into Redis; MySQL has the totals of the others

_hot_comments: HotReads[int, int] = HotReads(counters.comments_key)


def read_totals(references: Sequence[tuple[Target, str]]) -> list[dict[str, Any]]:
    """Return the totals of targets as the API sends them, in their order, each with its id as the
    request has it. Of a missing target zeros, of a deleted one its last totals.

    From memory for hot targets, and one round trip each for the reactions and the comments of the
    others; two more and a statement for what is not in Redis. Raises RedisDown, MysqlDown,
    TooManyLookups.
    """
    targets = [target for target, _ in references]
    pairs = [(kind, target) for target in targets for kind in kinds_of(target.type)]
    counts, _ = queries.read_counts(pairs, None, max_loaded=MAX_LOADED)
    posts = [target.id for target in targets if target.type == "post"]
    comments = _hot_comments.read_all(posts, counters.read_comments) if posts else {}
    items: dict[Target, dict[str, Any]] = {
        target: {"type": target.type, "reactions": {}} for target in targets
    }
    for (kind, target), count in zip(pairs, counts, strict=True):
        item = items[target]
        item["reactions"][kind.name] = {"total": count.total, "at": count.at}
        if kind in BUILT_IN:
            item |= {kind.field: count.total, f"{kind.field}_at": count.at}
    for post_id in posts:
        items[Target("post", post_id)]["comments"] = comments.get(post_id, 0)
    return [{"id": target_id, **items[target]} for target, target_id in references]
