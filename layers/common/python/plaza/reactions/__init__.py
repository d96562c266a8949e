"""Likes, collects and follows: decided in Redis, recorded in MySQL, counted once."""

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
from plaza.reactions.reading import Count, count, reacted, reactors
from plaza.reactions.rebuilding import read_step, rebuild
from plaza.reactions.saving import SETTLEMENTS, read_keys, save, settle_again
from plaza.reactions.sweeping import sweep_outbox

__all__ = [
    "COLLECT",
    "FOLLOW",
    "KINDS",
    "LIKE",
    "REACTIONS",
    "REBUILDS",
    "SETTLEMENTS",
    "Count",
    "Kind",
    "Outcome",
    "Reacted",
    "ReactionChanged",
    "Reactor",
    "Target",
    "bury",
    "count",
    "react",
    "reacted",
    "reactors",
    "read_keys",
    "read_step",
    "rebuild",
    "require_there",
    "save",
    "settle_again",
    "sweep_outbox",
]
