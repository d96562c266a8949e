"""Likes, collects and follows: decided in Redis, recorded in MySQL, counted once."""

from plaza.reactions.failovers import settle_after_failover
from plaza.reactions.hot_totals import forget_hot_totals
from plaza.reactions.mysql_reactions import Reacted, Reactor
from plaza.reactions.reacting import REACTIONS, REBUILDS, Outcome, bury, react, require_there
from plaza.reactions.reactions import (
    COLLECT,
    FOLLOW,
    KINDS,
    LIKE,
    Kind,
    ReactionChanged,
    Target,
)
from plaza.reactions.reading import Count, count, reacted, reactors, read_mine
from plaza.reactions.rebuilding import read_step, rebuild
from plaza.reactions.redis_rankings import (
    GONE_VER,
    RANKING_KEPT,
    RANKING_SHOWN,
    PostLikes,
    Ranked,
    Window,
    mark_ranking_whole,
    project_likes,
    read_ranked_posts,
    read_ranking,
    swap_ranking,
)
from plaza.reactions.saving import FOLLOWS, SETTLEMENTS, read_keys, save, settle_again
from plaza.reactions.sweeping import sweep_outbox

__all__ = [
    "COLLECT",
    "FOLLOW",
    "FOLLOWS",
    "GONE_VER",
    "KINDS",
    "LIKE",
    "RANKING_KEPT",
    "RANKING_SHOWN",
    "REACTIONS",
    "REBUILDS",
    "SETTLEMENTS",
    "Count",
    "Kind",
    "Outcome",
    "PostLikes",
    "Ranked",
    "Reacted",
    "ReactionChanged",
    "Reactor",
    "Target",
    "Window",
    "bury",
    "count",
    "forget_hot_totals",
    "mark_ranking_whole",
    "project_likes",
    "react",
    "reacted",
    "reactors",
    "read_keys",
    "read_mine",
    "read_ranked_posts",
    "read_ranking",
    "read_step",
    "rebuild",
    "require_there",
    "save",
    "settle_after_failover",
    "settle_again",
    "swap_ranking",
    "sweep_outbox",
]
