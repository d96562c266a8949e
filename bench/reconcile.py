"""A whole run of the reconciliation: relations a second, beside bare counting."""

import time
from collections.abc import Sequence
from functools import partial

import psutil

from bench.dataset import Reaction
from bench.figures import Figure, Goal, Peer
from bench.harness import Harness, insert_rows
from bench.meters import time_s
from cli.paths import CommandError
from plaza.core import counters
from plaza.core.reactions import COLLECT, FOLLOW, LIKE, Kind, Target, hydration
from plaza.core.reactions.queues import BloomBuildStep
from plaza.core.reactions.rebuild import rebuild
from plaza.core.reactions.settings import reaction_settings
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.operate.reconciliation import RunReport, mysql_runs, orchestrator, run_steps

MAX_LIKES = 21_000  # of the most popular post; the second has half as many, and so on
POSTS = 9_000
FOLLOWS = 20_000
POSTS_AT = 30_000_000  # ids of posts, users and rows that no other bench uses
HOT = 2_000  # most popular targets, which Redis has
RUNS = 3
_BASE_US = 1_700_000_000_000_000


def measure(harness: Harness) -> list[Figure]:
    """Reconcile likes, collects and follows by Zipf's law, with the most popular in Redis.

    The best of three runs. Messages do not pass SQS.
    """
    harness.clear()
    for table in (
        "reaction",
        "content",
        "counter",
        "user_counter",
        "unread_counter",
        "notification_group",
    ):
        mysql.write(f"DELETE FROM {table}")
    relations = _make_reactions(harness.scale(MAX_LIKES))
    _save(relations, harness.scale(FOLLOWS))
    _load_hottest(relations)
    runs = []
    for _ in range(RUNS):
        began_s, began_cpu_s = time.perf_counter(), _cpu_s()
        report, parts = _run()
        runs.append((time.perf_counter() - began_s, _cpu_s() - began_cpu_s, report, parts))
        if report.differing or report.tally.skipped:
            raise CommandError(f"undamaged data differs: {report}")
    took_s, _, report, parts = min(runs, key=lambda run: run[0])
    cpu_s = min(run[1] for run in runs)
    counted = report.tally.relations
    return [
        Figure(
            "reconciliation, a whole run",
            counted / took_s,
            "relations/s",
            Peer("COUNT(*) of all", counted / _count_s()),
            Goal("at least", 100_000),
        ),
        Figure("  per CPU second of Redis, MariaDB and Python", counted / cpu_s, "relations/s"),
        Figure("  relations", counted, ""),
        Figure("  targets and projections in Redis", report.tally.cached, ""),
        *(Figure(f"  time in {name}", spent_s, "s") for name, spent_s in sorted(parts.items())),
    ]


def _make_reactions(max_likes: int) -> list[Reaction]:
    return [
        (kind, post, actor)
        for post in range(1, POSTS + 1)
        for kind, share in ((LIKE, 1), (COLLECT, 4))
        for actor in range(1, max_likes // post // share + 1)
    ]


def _cpu_s() -> float:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def _run() -> tuple[RunReport, dict[str, float]]:
    """Run one reconciliation. Returns its report, and the seconds of each sort of part."""
    run_id, began = mysql_runs.begin(*run_steps.plan())
    if not began:
        raise CommandError("the run before has not ended")
    spent: dict[str, float] = {}
    while todo := [part for part in mysql_runs.read_parts(run_id) if not part.is_done]:
        for part in todo:
            _run_part(run_id, part.name, spent)
        if not any(part.name == run_steps.RECHECK for part in mysql_runs.read_parts(run_id)):
            mysql_runs.add_part(run_id, run_steps.RECHECK)
    mysql_runs.end(run_id)
    return orchestrator.read_report(run_id), spent


def _run_part(run_id: int, name: str, spent: dict[str, float]) -> None:
    began_s = time.perf_counter()
    while part := mysql_runs.read_part(run_id, name):
        mysql_runs.commit_step(part, run_steps.execute(part))
    sort = name.partition(":")[0]
    spent[sort] = spent.get(sort, 0.0) + time.perf_counter() - began_s


def _save(relations: Sequence[Reaction], follows: int) -> None:
    rows = [
        ("post", POSTS_AT + post, kind, POSTS_AT + actor, _BASE_US + i)
        for i, (kind, post, actor) in enumerate(relations)
    ]
    rows += [
        ("user", POSTS_AT + i % 50 + 1, FOLLOW, POSTS_AT + 100 + i // 50, _BASE_US + i)
        for i in range(follows)
    ]
    insert_rows(
        "reaction (target_type, target_id, kind, actor_id, state, version)",
        (
            f"('{of_type}',{of_id},'{kind.name}',{actor},1,{version})"
            for of_type, of_id, kind, actor, version in sorted(
                rows, key=lambda row: (row[0], row[1], row[2].name, row[3])
            )
        ),
    )
    posts = sorted({POSTS_AT + post for _, post, _ in relations})
    insert_rows(
        "content (content_type, content_id, author_id)",
        (f"('post',{post},{POSTS_AT + post % 500 + 1})" for post in posts),
    )
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version)"
        " SELECT target_type, target_id, kind, COUNT(*), COUNT(*) FROM reaction"
        " GROUP BY target_type, target_id, kind"
    )
    for column, query in (
        ("posts_total", "SELECT author_id AS user_id FROM content"),
        ("likes_received_total", _received("like")),
        ("collects_received_total", _received("collect")),
        ("followers_total", "SELECT target_id AS user_id FROM reaction WHERE kind = 'follow'"),
        ("following_total", "SELECT actor_id AS user_id FROM reaction WHERE kind = 'follow'"),
    ):
        mysql.write(
            f"INSERT INTO user_counter (user_id, {column}, version)"
            f" SELECT user_id, COUNT(*), 1 FROM ({query}) AS counted GROUP BY user_id"
            f" ON DUPLICATE KEY UPDATE {column} = VALUES({column})"
        )


def _received(kind: str) -> str:
    return (
        "SELECT author_id AS user_id FROM content JOIN reaction ON target_type = content_type"
        f" AND target_id = content_id AND reaction.kind = '{kind}'"
    )


def _load_hottest(relations: Sequence[Reaction]) -> None:
    """Load the most popular targets into Redis, with bloom filters, and some users."""
    popular: dict[tuple[Kind, Target], int] = {}
    for kind, post, _ in relations:
        pair = kind, Target("post", POSTS_AT + post)
        popular[pair] = popular.get(pair, 0) + 1
    hottest = sorted(popular, key=lambda pair: -popular[pair])[:HOT]
    for start in range(0, len(hottest), 10):
        hydration.hydrate(hottest[start : start + 10])
    for kind, target in hottest:
        if popular[kind, target] > reaction_settings().recent_cap:
            rebuild([BloomBuildStep(kind, target, "", 0)])
    hydration.hydrate([(FOLLOW, Target("user", POSTS_AT + i)) for i in range(1, 51)])
    counters.read_users([POSTS_AT + i for i in range(1, 501)])
    if not redis.execute("DBSIZE"):
        raise CommandError("nothing is hot")


def _count_s() -> float:
    count = partial(
        mysql.fetch_all,
        "SELECT target_type, target_id, kind, COUNT(*) FROM reaction FORCE INDEX (PRIMARY)"
        " WHERE state = 1 GROUP BY target_type, target_id, kind",
    )
    return min(time_s(count) for _ in range(RUNS))
