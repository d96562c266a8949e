"""Scripts of all contexts: projections, limits, id blocks, id filters."""

from bench.harness import Harness
from bench.scripts.cases import Case, prepare_nothing
from cli.paths import CommandError
from plaza.infra.derived import id_filter, ids, outbox, projections
from plaza.infra.derived.id_filter import MAX_IDS_PER_CALL, IdFilter
from plaza.infra.derived.outbox import Progress
from plaza.infra.derived.projections import Projection
from plaza.infra.http import limits
from plaza.infra.http.limits import Attempt, Bucket, Window
from plaza.infra.redis import locks

_KEY = projections.key_of("shop:7", "page")
_TEXT = "x" * 64_000  # the longest text of a request
_WINDOWS = (Window(600, 60),)
_BUCKET = Bucket("bench", "7", 1.0, 1_000)
_FILTER = IdFilter("bench")
_IN_FILTER = 200_000


def _attempt_often(harness: Harness) -> None:
    for _ in range(59):
        limits.admit(Attempt("bench", "7"), _WINDOWS)


def _lease(run: int) -> int:
    ids._block.reset()
    return ids.new_id()


def _unlock(run: int) -> None:
    lock = locks.try_lock("{7}:bench:lock", 60)
    if lock is None or not locks.unlock(lock):
        raise CommandError("no lock was taken")


def _confirm_sweep(run: int) -> None:
    before = str(run - 1) if run else ""
    key, index = projections.key_of("bench", "sweep"), projections.key_of("bench", "outboxes")
    outbox.confirm_all([Progress(key, index, "7", before, str(run), "1")])


def _store_read(run: int) -> None:
    keys = [f"{_KEY}:read:{run}:{n}" for n in range(projections._MAX_KEYS)]
    fences = projections.announce_reads(keys)
    projections.store_read([Projection(key, 1, _TEXT[:1_000]) for key in keys], fences)


def _begin_filter(harness: Harness) -> None:
    _FILTER.begin("bench", _IN_FILTER)


def _fill_filter(harness: Harness) -> None:
    _begin_filter(harness)
    _FILTER.fill("bench", range(1, _IN_FILTER // 10), last=True)


def _new_ids(run: int) -> range:
    first = 10**9 + run * MAX_IDS_PER_CALL
    return range(first, first + MAX_IDS_PER_CALL)


CASES = [
    Case(
        "a long text",
        projections._PROJECT,
        prepare_nothing,
        lambda run: projections.store_all([Projection(_KEY, run, _TEXT)], create=True),
    ),
    Case(
        "250 short texts",
        projections._PROJECT,
        prepare_nothing,
        lambda run: projections.store_all(
            [Projection(f"{_KEY}:{n}", run, _TEXT[:1_000]) for n in range(projections._MAX_KEYS)],
            create=True,
        ),
    ),
    Case("250 short texts", projections.STORE_READ, prepare_nothing, _store_read),
    Case(
        "a long text",
        projections._DROP,
        lambda harness: projections.store_all([Projection(_KEY, 0, _TEXT)], create=True),
        lambda run: projections.drop_all({_KEY: 1 + run}),
    ),
    Case(
        "a full window",
        limits._ADMIT,
        _attempt_often,
        lambda run: limits.admit(Attempt("bench", "7"), _WINDOWS),
    ),
    Case("a bucket", limits._ACQUIRE, prepare_nothing, lambda run: limits.acquire(_BUCKET)),
    Case("a block", ids._LEASE, prepare_nothing, _lease),
    Case("a swept outbox", outbox.CONFIRM_SWEEP, prepare_nothing, _confirm_sweep),
    Case("a lock", locks._RELEASE_LOCK, prepare_nothing, _unlock),
    Case(
        "as many as one call takes",
        id_filter.FILL,
        _begin_filter,
        lambda run: _FILTER.fill("bench", _new_ids(run), last=False),
    ),
    Case(
        "as many as one call takes",
        id_filter.ADD,
        _fill_filter,
        lambda run: _FILTER.add(_new_ids(run)),
    ),
    Case(
        "of a million ids",
        id_filter.BEGIN,
        prepare_nothing,
        lambda run: _FILTER.begin(f"bench{run}", 1_000_000),
    ),
    Case("an id that may exist", id_filter.QUERY, _fill_filter, lambda run: _FILTER.query(7)),
]
