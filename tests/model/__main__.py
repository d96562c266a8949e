"""Many runs of the model of reactions, and the mutations of the protocol that it must find.

    python -m tests.model [--runs 2000] [--first 0] [--trouble NAME]
    python -m tests.model --mutations [--mutation NAME] [--runs 400]

Prints a line for each trouble (runs, failed runs, counts), or a table of the mutations with the
number of runs until each was found. The exit status is 1 when a run failed or a mutation was not
found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from local.stack import servers
from plaza.infra.aws import secrets
from plaza.infra.queues import sqs
from plaza.infra.runtime.errors import Unavailable
from tests.model.mutations import MUTATIONS, mutate
from tests.model.reactions_model import TROUBLES, run_seed
from tests.model.stories import STORIES, run_story
from tests.support.plaza import FakeQueues, World, forget, set_up_for
from tests.support.servers import add_login, model_settings


@contextmanager
def started() -> Iterator[tuple[World, pytest.MonkeyPatch]]:
    """Start a Redis and a MariaDB for this command, and a queue in memory."""
    patch = pytest.MonkeyPatch()
    fake = FakeQueues()
    with (
        tempfile.TemporaryDirectory() as directory,
        servers.run_server(
            servers.prepare_redis(Path(directory) / "redis", settings=model_settings())
        ) as redis,
        servers.run_server(
            servers.prepare_mysql(Path(directory) / "mysql", for_tests=True)
        ) as mysql,
        set_up_for(add_login(redis.url), mysql.url, is_cluster=False, redis_timeout_s=5),
    ):
        for name in ("send", "send_all", "measure"):
            patch.setattr(sqs, name, getattr(fake, name))
        patch.setattr(secrets, "read", lambda secret_id: f"the secret {secret_id}")
        try:
            yield World(fake), patch
        finally:
            patch.undo()
            forget()


def play(trouble: str, seeds: range, world: World, patch: pytest.MonkeyPatch) -> int:
    """Run seeds of one trouble; return how many runs failed."""
    stats: Counter[str] = Counter()
    failed: list[str] = []
    began_s = time.monotonic()
    for seed in seeds:
        try:
            with redirect_stdout(StringIO()):
                stats += run_seed(seed, trouble, world, patch)
        except AssertionError as error:
            failed.append(str(error).partition("\n")[0][-1500:])
    seconds = time.monotonic() - began_s
    print(f"{trouble:9} {len(seeds)} runs, {len(failed)} failed, {seconds:.0f} s  {dict(stats)}")
    for line in failed[:3]:
        print(f"   {line[-1500:]}", flush=True)
    return len(failed)


def find(name: str, runs: int, world: World, patch: pytest.MonkeyPatch) -> int | None:
    """Return the number of runs until a mutation is found, None when ``runs`` do not find it."""
    troubles = MUTATIONS[name].troubles
    for run in range(runs):
        trouble = troubles[run % len(troubles)]
        try:
            with redirect_stdout(StringIO()):
                if trouble in STORIES:
                    run_story(trouble, world, patch, mutate(name))
                else:
                    run_seed(run + 1, trouble, world, patch, mutate(name))
        except (AssertionError, Unavailable) as error:
            reason = str(error).partition("\n")[0].partition(": ")[2] or repr(error)
            show_row(name, run + 1, trouble, reason[:120])
            return run + 1
    show_row(name, f"not in {runs}", ", ".join(troubles), "")
    return None


def show_row(*cells: object) -> None:
    """Print a row of the table of mutations."""
    print("| " + " | ".join(str(cell).replace("|", " ") for cell in cells) + " |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--runs", type=int, help="runs in all, or the maximum for each mutation")
    parser.add_argument("--first", type=int, default=0, help="the seed before the first one")
    parser.add_argument("--trouble", choices=TROUBLES)
    parser.add_argument("--mutations", action="store_true", help="break each rule of the protocol")
    parser.add_argument("--mutation", choices=MUTATIONS, help="break one rule")
    options = parser.parse_args()
    with started() as (world, patch):
        if options.mutations or options.mutation:
            names = [options.mutation] if options.mutation else list(MUTATIONS)
            show_row("without", "runs", "trouble", "found by")
            show_row(*["---"] * 4)
            results = [find(name, options.runs or 400, world, patch) for name in names]
            return int(None in results)
        troubles = [options.trouble] if options.trouble else list(TROUBLES)
        each = -(-(options.runs or 2000) // len(troubles))
        seeds = range(options.first + 1, options.first + 1 + each)
        return int(sum(play(trouble, seeds, world, patch) for trouble in troubles) > 0)


if __name__ == "__main__":
    sys.exit(main())
