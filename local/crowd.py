"""The demo crowd: some people and posts of its own making, skewed like a real one.

Their ids are in a range of their own and never meet those of a replayed file.
"""

import random
from itertools import accumulate

from local.interactions import Interaction, write_file
from local.paths import LocalError
from local.replay import Options, console, replay, show
from local.stack import Stack

PEOPLE = 60
POSTS = 40
ACTS = 1400
FIRST_ID = 9_000_001
SEED = 7
DUPLICATES = 0.1
BEGAN_S = 1_700_000_000

_SKEW = 0.9  # of Zipf's law: the most popular post gets about an eighth of all
_UNLIKES = 0.12  # of all acts: somebody takes a like back that they gave


def play(stack: Stack) -> None:
    """Let the crowd loose on a stack and print what came of it. Raises LocalError unless clean."""
    path = stack.directory / "crowd.csv"
    write_file(path, make_crowd())
    report = replay(stack, path, Options(duplicates=DUPLICATES, seed=SEED))
    show(report, console)
    console.print()
    if not report.clean:
        raise LocalError("the demo crowd did not end with a clean audit")


def make_crowd(
    people: int = PEOPLE,
    posts: int = POSTS,
    acts: int = ACTS,
    *,
    first_id: int = FIRST_ID,
    seed: int = SEED,
) -> list[Interaction]:
    """What a crowd does, in order of time; the same for the same ``seed``.

    Popularity of posts and activity of people follow Zipf's law. Some take likes back.
    """
    chance = random.Random(seed)
    user_ids = list(range(first_id, first_id + people))
    item_ids = list(range(first_id, first_id + posts))
    chance.shuffle(user_ids)
    chance.shuffle(item_ids)
    activity, popularity = _zipf(people), _zipf(posts)
    liked: list[tuple[int, int]] = []
    crowd, at_s = [], BEGAN_S
    for _ in range(acts):
        at_s += chance.randrange(1, 60)
        if liked and chance.random() < _UNLIKES:
            user_id, item_id = liked.pop(chance.randrange(len(liked)))
            crowd.append(Interaction(user_id, item_id, 1.0, at_s))
            continue
        (user_id,) = chance.choices(user_ids, cum_weights=activity)
        (item_id,) = chance.choices(item_ids, cum_weights=popularity)
        (rating,) = chance.choices([5.0, 4.0, 3.0, 2.0], [15, 50, 30, 5])
        if rating >= 4:
            liked.append((user_id, item_id))
        crowd.append(Interaction(user_id, item_id, rating, at_s))
    return crowd


def _zipf(count: int) -> list[float]:
    """Cumulative weights of ``count`` places."""
    return list(accumulate(place**-_SKEW for place in range(1, count + 1)))
