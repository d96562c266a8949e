"""The demo crowd: made-up users, their posts, comments, likes and follows.

Activity and popularity follow Zipf's law. The ids are in a range of their own and never collide
with the posts of a replayed file.
"""

import random
import secrets
from contextlib import nullcontext
from itertools import accumulate

from rich.console import Console

from cli.output import console
from cli.paths import CommandError
from local.audit.audit import render
from local.load import pictures, town
from local.load.follows import Follow, Follows
from local.load.interactions import Interaction, Interactions
from local.load.replay import Options, replay_all, show_replay
from local.load.requests import Request
from local.load.scenario import Scenario
from local.load.texts import Texts, rename, write_comment, write_post
from local.stack.stack import Stack

PEOPLE = 60
POSTS = 40
ACTS = 1000
FOLLOWS = 240
WRITTEN = 12
COMMENTS = 30
FIRST_ID = 9_000_001
SEED = 7
DUPLICATES = 0.1
CONCURRENCY = 12
BEGAN_S = 1_700_000_000

_SKEW = 0.9  # of Zipf's law: the most popular post gets about an eighth of all likes
_UNLIKES = 0.12  # share of interactions that remove a like
_NAMES = ("Ada", "Ben", "Chloe", "Dev", "Emil", "Fatou", "Gita", "Hugo", "Ines", "Jun", "Kaya")
_PLACES = "the harbour", "the old town", "the market", "the hills", "the lake", "the night train"
_REMARKS = "Beautiful!", "I was there last year.", "How do I get there?", "Thank you for this."


def play(stack: Stack, out: Console = console) -> str:
    """Play the crowd on a stack. Prints the report to ``out``, returns a line about it.

    Raises CommandError unless it is clean.
    """
    with console.status("building the town") as status:
        user_ids = range(FIRST_ID, FIRST_ID + PEOPLE)
        built = town.build(
            stack, user_ids, SEED, lambda part: status.update(f"building the town: {part}")
        )
    out.print(
        f"[bold]a town[/bold]\n{built.types} types of shops, {built.shops} shops with places, "
        f"{built.reviews} reviews, a flash sale with {built.orders} orders\n"
    )
    scenarios: dict[str, Scenario] = {
        "follows": Follows(make_follows(), DUPLICATES, SEED),
        "likes and collects": Interactions(make_interactions(), DUPLICATES, SEED),
        "names, posts and comments": Texts(make_texts(), DUPLICATES, SEED),
    }
    shows_progress = nullcontext() if out is console else console.status("playing a demo crowd")
    with shows_progress:
        reports = replay_all(stack, scenarios, Options(concurrency=CONCURRENCY, seed=SEED), out=out)
    for report in reports:
        show_replay(report, out)
        out.print()
    out.print(render(reports[-1].audit_report))
    if not all(report.clean for report in reports):
        raise CommandError("the demo crowd did not end with a clean audit")
    requests = sum(len(report.requests) for report in reports)
    return f"a town of {PEOPLE} people: {requests:,} requests, the audit is clean"


def make_interactions(
    people: int = PEOPLE,
    posts: int = POSTS,
    acts: int = ACTS,
    *,
    first_id: int = FIRST_ID,
    seed: int = SEED,
) -> list[Interaction]:
    """Return the interactions of a crowd in order of time, the same for the same ``seed``.

    Popularity of posts and activity of people follow Zipf's law. Some likes are removed.
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


def make_follows(
    people: int = PEOPLE, follows: int = FOLLOWS, *, first_id: int = FIRST_ID, seed: int = SEED
) -> list[Follow]:
    """Return distinct follows, the same for the same ``seed``; some users have many followers."""
    chance = random.Random(seed)
    user_ids = list(range(first_id, first_id + people))
    celebrities = user_ids[:]
    chance.shuffle(celebrities)
    popularity = _zipf(people)
    made: dict[Follow, None] = {}
    while len(made) < follows:
        (followee_id,) = chance.choices(celebrities, cum_weights=popularity)
        follower_id = chance.choice(user_ids)
        if follower_id != followee_id:
            made[Follow(follower_id, followee_id)] = None
    return list(made)


def make_texts(
    people: int = PEOPLE,
    posts: int = WRITTEN,
    comments: int = COMMENTS,
    *,
    first_id: int = FIRST_ID,
    seed: int = SEED,
) -> list[Request]:
    """Return names of the people, some posts, and comments on the first posts of the crowd.

    The same for the same ``seed``, except for the idempotency keys.
    """
    chance, run = random.Random(seed), secrets.token_hex(4)
    user_ids = list(range(first_id, first_id + people))
    texts = [
        rename(user_id, f"{_NAMES[number % len(_NAMES)]} {number + 1}", pictures.of_user(number))
        for number, user_id in enumerate(user_ids)
    ]
    for number in range(posts):
        where = chance.choice(_PLACES)
        title, body = f"A day at {where}", f"Today I saw {where}. More tomorrow."
        images = pictures.of_title(title)
        author_id = chance.choice(user_ids)
        texts.append(write_post(author_id, f"{run}-post-{number}", title, body, images))
    for number in range(comments):
        (post_id,) = chance.choices(range(first_id, first_id + 10), cum_weights=_zipf(10))
        remark = chance.choice(_REMARKS)
        key = f"{run}-comment-{number}"
        texts.append(write_comment(chance.choice(user_ids), key, post_id, remark))
    return texts


def _zipf(count: int) -> list[float]:
    return list(accumulate(number**-_SKEW for number in range(1, count + 1)))
