"""Rankings of posts: full calls on a ranking with half a million versions."""

from bench.harness import Harness
from bench.scripts.cases import Case
from plaza.core.reactions import redis_rankings
from plaza.core.reactions.model import MAX_RANKED, PostLikes, PostRank
from plaza.infra.redis import redis

HEARD = 480_000  # posts with a version, all of them old enough to be dropped
_FIRST = 10**6


def _remember(harness: Harness) -> None:
    versions, heard = redis_rankings.version_keys()
    for start in range(0, harness.scale(HEARD), 10_000):
        posts = [f"{n:019d}" for n in range(start, start + 10_000)]
        redis.execute("HSET", versions, *(part for post in posts for part in (post, 1)))
        redis.execute("ZADD", heard, *(part for post in posts for part in (1, post)))


def _posts(run: int, count: int) -> list[PostLikes]:
    return [PostLikes(_FIRST + run * count + n, 1 + n, 5) for n in range(count)]


def _project(run: int) -> None:
    redis_rankings.project_likes(_posts(run, redis_rankings._MAX_POSTS_PER_CALL))


def _ranked() -> list[PostRank]:
    return [PostRank(7, 1 + n) for n in range(MAX_RANKED)]


CASES = [
    Case("half a million due", redis_rankings.PROJECT_RANKING, _remember, _project),
    Case(
        "a window that replaces another",
        redis_rankings.SWAP_RANKING,
        lambda harness: redis_rankings.swap_ranking("day", _ranked(), 1),
        lambda run: redis_rankings.swap_ranking("day", _ranked(), 2 + run),
    ),
    Case(
        "the last page, all posts equally liked",
        redis_rankings.PAGE_RANKING,
        lambda harness: redis_rankings.swap_ranking("day", _ranked(), 1),
        lambda run: redis_rankings.read_ranking("day", PostRank(7, 2), 101),
    ),
]
