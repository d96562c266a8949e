"""What goes on in threads while something is played: work of others, and trouble."""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator

import psutil

from local.stack.stack import Stack


@contextlib.contextmanager
def run_threads(work: Callable[[threading.Event], None], threads: int = 1) -> Iterator[None]:
    """``work`` goes on meanwhile, in some threads; each is told when to end."""
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
    """Kill a consumer at work every few seconds meanwhile; yields the pids so far."""
    chance, killed = random.Random(seed), list[int]()

    def kill(end: threading.Event) -> None:
        while not end.wait(chance.uniform(*every_s)):
            if workers := find_connected(stack, consumer):
                worker = chance.choice(workers)
                with contextlib.suppress(psutil.NoSuchProcess):
                    worker.kill()
                    killed.append(worker.pid)

    with run_threads(kill):
        yield killed


def find_connected(stack: Stack, consumer: str) -> list[psutil.Process]:
    """The workers of a consumer that have saved something: they are connected.

    One that is only starting is left alone: messages would use up their receives on consumers
    that never began.
    """
    found = []
    for worker in stack.find_workers(consumer):
        with contextlib.suppress(psutil.Error):
            if worker.net_connections("tcp"):
                found.append(worker)
    return found
