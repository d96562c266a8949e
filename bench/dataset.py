"""Reactions with realistic popularity: from a file if it exists, then made up."""

import random
from collections.abc import Iterator
from itertools import accumulate, chain, islice
from pathlib import Path

from cli.paths import ROOT
from local.load.interactions import FILES, build_requests
from plaza.core.reactions import KINDS, LIKE, Kind

Reaction = tuple[Kind, int, int]
"""A kind, a post, an actor."""

PLAYED = ROOT.parent / "shared" / "data" / "interactions.csv.gz"
MADE_UP_POSTS = 9_000
MADE_UP_ACTORS = 20_000


def load_reactions(count: int) -> list[Reaction]:
    """Return ``count`` distinct reactions in order of time."""
    played = _play(PLAYED) if PLAYED.exists() else ()
    distinct = list(islice(dict.fromkeys(chain(played, _make_up(count * 3))), count))
    if len(distinct) < count:
        raise ValueError(f"{len(distinct)} distinct reactions instead of {count}")
    return distinct


def _play(path: Path) -> Iterator[Reaction]:
    for interaction in FILES.read(path):
        for request in build_requests(interaction):
            if request.sets and request.sets[1]:
                (kind, post_id, actor_id), _ = request.sets
                yield KINDS[kind], post_id, actor_id


def _make_up(count: int) -> Iterator[Reaction]:
    chance = random.Random(7)
    weights = list(accumulate(1 / rank for rank in range(1, MADE_UP_POSTS + 1)))
    posts = chance.choices(range(1, MADE_UP_POSTS + 1), cum_weights=weights, k=count)
    for post_id in posts:
        yield LIKE, post_id, chance.randrange(1, MADE_UP_ACTORS + 1)
