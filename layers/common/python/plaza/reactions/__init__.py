"""Likes and collects: decided in Redis, recorded in MySQL, counted once."""

from plaza.reactions.mysql_reactions import Reacted, Reactor
from plaza.reactions.reacting import REACTIONS, REBUILDS, Outcome, react
from plaza.reactions.reactions import (
    COLLECT,
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
    "count",
    "react",
    "reacted",
    "reactors",
    "read_keys",
    "read_step",
    "rebuild",
    "save",
    "settle_again",
    "sweep_outbox",
]
