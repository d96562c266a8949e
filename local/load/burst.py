"""``burst``: thousands of likes of one post within seconds, with a consumer that lags.

Viewer states and totals must be exact at every moment, not only when the queue is empty: after
``liked: true`` an actor is a liker, whether or not MySQL has the row. A burst is a replay of
made-up requests, each of whose answers is known beforehand. Meanwhile the total is read.
"""

import argparse
import asyncio
import contextlib
import json
import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console

from cli.output import mark, new_table, print_report, progress_console, require_positive
from cli.paths import CommandError
from local.audit import audit
from local.audit.backlog import wait_until_quiet
from local.load import replay
from local.load.api_reader import ApiReader
from local.load.crowd import Client
from local.load.interactions import Interaction, Interactions, create_posts, fetch_viewer_states
from local.load.player import Player
from local.load.requests import Call, Reaction, set_reaction
from local.load.scenario import Comparison, compare_states
from local.stack import deployment
from local.stack.servers import connect_redis
from local.stack.stack import Stack
from local.stack.status import count_messages
from local.stack.tokens import open_sessions

FIRST_ID = 9_700_000_000  # of posts; the actors are below
READER = 9_700_000
FIRST_ACTOR = 9_700_001
EVERY_S = 1.0
QUIET_S = 120.0
_READ, _UNLIKED, _AGAIN = 0.3, 0.1, 0.1  # shares of the actors


@dataclass(frozen=True, slots=True)
class Moment:
    """A read of the total. ``at_s``: seconds since the first like.

    ``liked``: actors whose last answer was ``liked: true``. ``unsaved``: reaction messages that no
    consumer has finished. ``low``, ``high``: bounds of a true total, given what was in flight.
    """

    at_s: float
    liked: int
    unsaved: int
    wrong_answers: int
    total: int
    low: int
    high: int

    @property
    def clean(self) -> bool:
        return self.low <= self.total <= self.high and not self.wrong_answers


class Burst(Interactions):
    """Likes of one post by ``likes`` actors, beside ``earlier`` ones by others.

    Some actors read their state later, some unlike, some like again. ``watch`` reads the total.
    """

    def __init__(self, post_id: int, likes: int, earlier: int, seed: int) -> None:
        actors = range(FIRST_ACTOR, FIRST_ACTOR + likes)
        super().__init__(make_burst(post_id, actors, seed), _AGAIN, seed)
        self.post_id = post_id
        self.actors = actors
        self.earlier = range(actors.stop, actors.stop + earlier)
        self.user_ids = [READER, *actors, *self.earlier]
        self.moments: list[Moment] = []

    async def watch(self, stack: Stack, player: Player) -> None:
        """Read the total each second until the requests have ended and their messages are stored.

        Raises CommandError when they are not stored.
        """
        began_s = time.monotonic()
        unsaved, end_s = 1, 0.0
        async with Client(player.base_url, player.tokens, 1) as client:
            while unsaved or not player.is_over:
                due_s = began_s + (len(self.moments) + 1) * EVERY_S
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                unsaved = sum((await asyncio.to_thread(count_messages, stack))["reactions"])
                self.moments.append(await self._read(client, player, began_s, unsaved))
                end_s = end_s or player.is_over * (time.monotonic() + QUIET_S)
                if 0 < end_s < time.monotonic():
                    raise CommandError("the likes are not stored")

    async def _read(self, client: Client, player: Player, began_s: float, unsaved: int) -> Moment:
        before = split(player.states)
        targets = {"targets": [{"type": "post", "id": str(self.post_id)}]}
        answer = await client.send(Call("POST", "/reactions/query", targets), READER)
        if answer.status != 200 or answer.body["exact"] is not True:
            raise CommandError(f"the total is not exact: {answer}")
        after = split(player.states)
        return Moment(
            at_s=round(time.monotonic() - began_s, 1),
            liked=len(after[0]),
            unsaved=unsaved,
            wrong_answers=len(player.tally.wrong),
            total=answer.body["items"][0]["likes"],
            low=len(self.earlier) + len(before[0] & after[0]),
            high=len(self.earlier) + len(before[1] | after[1]),
        )

    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Compare as for a file, and the viewer state of each actor. Raises CommandError."""
        compared = await super().compare(stack, api)
        states = await fetch_viewer_states(api, self.actors, [self.post_id])
        likes = {key: state for key, state in states.items() if key.kind == "like"}
        return compared._replace(
            differences=[*compared.differences, *compare_states(self.after, likes)],
            notes=[*compared.notes, f"the viewer states of all {len(likes):,} actors"],
        )


def make_burst(post_id: int, actors: Collection[int], seed: int) -> list[Interaction]:
    """Return the likes in order, and what some actors do later: at most a quarter of all."""
    chance, rows = random.Random(seed), []
    for at, actor_id in enumerate(actors):
        later = at + chance.randrange(1, len(actors) // 4 + 2)
        rows.append(Interaction(actor_id, post_id, 4.0, at))
        if chance.random() < _UNLIKED:
            rows.append(Interaction(actor_id, post_id, 1.0, later))
        if chance.random() < _READ:
            rows.append(Interaction(actor_id, post_id, 3.0, later + chance.randrange(100)))
    return sorted(rows, key=lambda row: row.at_s)


def split(states: Mapping[Reaction, bool | None]) -> tuple[set[Reaction], set[Reaction]]:
    """Return the reactions that are on, and those that may be on."""
    on = {reaction for reaction, state in states.items() if state}
    return on, on | {reaction for reaction, state in states.items() if state is None}


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a burst: the report of its replay, and the moments."""

    replayed: replay.Report
    moments: Sequence[Moment] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return self.replayed.clean and all(moment.clean for moment in self.moments)

    def to_json(self) -> dict[str, Any]:
        moments = [asdict(moment) | {"clean": moment.clean} for moment in self.moments]
        return self.replayed.to_json() | {"clean": self.clean, "moments": moments}


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Run a burst. Returns 1 unless the report is clean. Raises CommandError."""
    require_positive(args, "likes", "seconds", "concurrency")
    if min(args.lag, args.build_lag, args.earlier) < 0:
        raise CommandError("--lag, --build-lag and --earlier can't be below 0")
    out = progress_console(args)
    burst = Burst(FIRST_ID + int(time.time()), args.likes, args.earlier, args.seed)
    if args.earlier:
        with out.status("earlier likes"):
            asyncio.run(like_earlier(stack, burst))
            forget(stack, burst.post_id)
    options = replay.Options(
        concurrency=args.concurrency,
        rate=len(burst.requests) / args.seconds,
        meanwhile=lambda player: burst.watch(stack, player),
    )
    with delay_messages(stack, {"reactions": args.lag, "rebuilds": args.build_lag}):
        name = f"{args.likes:,} likes of one post, consumer lag {args.lag:g} s"
        replayed = replay.replay(stack, name, burst, options, out=out)
    return print_report(args, Report(replayed, burst.moments), show)


async def like_earlier(stack: Stack, burst: Burst) -> None:
    """Store the earlier likes. Raises CommandError."""
    tokens = dict(zip(burst.earlier, open_sessions(stack, burst.earlier), strict=True))
    create_posts([burst.post_id], [READER])
    async with Client(stack.base_url, tokens, replay.CONCURRENCY) as client:

        async def like(actor_id: int) -> None:
            await client.send(
                set_reaction(Reaction("like", burst.post_id, actor_id)).call, actor_id
            )

        tally = await client.play(burst.earlier, like)
    stored = await asyncio.to_thread(wait_until_quiet, stack, QUIET_S)
    if tally.statuses[200] != len(burst.earlier) or not stored:
        raise CommandError("the earlier likes were not stored")


@contextlib.contextmanager
def delay_messages(stack: Stack, lags_s: Mapping[str, float]) -> Iterator[None]:
    """Deliver the messages of each queue so many seconds after they were sent."""

    def put(lags_s: Mapping[str, float]) -> None:
        by_url = {stack.queues[queue]: lag_s for queue, lag_s in lags_s.items()}
        body = json.dumps({"lags_s": by_url})
        deployment.call_service(stack.lambda_url, "PUT", "/deliveries", body)

    put(lags_s)
    try:
        yield
    finally:
        put({})


def forget(stack: Stack, post_id: int) -> None:
    """Delete all keys of a post's likes from Redis."""
    with connect_redis(stack.redis_url, cluster=stack.redis_cluster) as client:
        for key in list(client.scan_iter(f"*:like:post:{post_id}:*", count=1000)):
            client.delete(key)


def show(report: Report, out: Console) -> None:
    table = new_table("second", "liked", "unsaved", "wrong answers", "total", "true total", "")
    for moment in report.moments:
        table.add_row(
            f"{moment.at_s:.1f}",
            f"{moment.liked:,}",
            f"{moment.unsaved:,}",
            f"{moment.wrong_answers:,}",
            f"{moment.total:,}",
            f"{moment.low:,} to {moment.high:,}" if moment.low < moment.high else f"{moment.low:,}",
            mark(moment.clean),
        )
    out.print(table)
    out.print()
    replay.show_replay(report.replayed, out)
    out.print(audit.render(report.replayed.audit_report))
    out.print("[green]clean[/green]" if report.clean else "[red]not clean[/red]")
