"""Work in threads while a load runs: simulated users, schedules, killed consumers."""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator

import psutil

from local.stack.stack import Stack

_POLL_S = 0.05


@contextlib.contextmanager
def run_threads(work: Callable[[threading.Event], None], threads: int = 1) -> Iterator[None]:
    """Run ``work`` in ``threads`` threads for the duration of the block, then set its event and
    join."""
    end = threading.Event()
    workers = [threading.Thread(target=work, args=(end,)) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        end.set()
        for worker in workers:
            worker.join()


@contextlib.contextmanager
def kill_workers(
    stack: Stack, consumer: str, every_s: tuple[float, float], seed: int
) -> Iterator[list[int]]:
    """Kill a busy worker of a consumer at random intervals. Yields the list of killed pids.

    The first kill comes after half the shortest interval, or once a worker is connected.
    """
    chance, killed = random.Random(seed), list[int]()

    def kill(end: threading.Event) -> None:
        wait_s = every_s[0] / 2
        while not end.wait(wait_s):
            wait_s = _POLL_S
            if workers := find_connected(stack, consumer):
                worker = chance.choice(workers)
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
                    killed.append(worker.pid)
                    wait_s = chance.uniform(*every_s)

    with run_threads(kill):
        yield killed


def find_connected(stack: Stack, consumer: str) -> list[psutil.Process]:
    """Return the workers of a consumer that have a TCP connection, so have processed a message.

    A worker that is still starting is spared: its kills would use up the receives of messages.
    """
    processes = []
    for worker in stack.find_workers(consumer):
        with contextlib.suppress(psutil.Error):
            if worker.net_connections("tcp"):
                processes.append(worker)
    return processes
