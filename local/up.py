"""``up``: start the stack, show the progress, run until Ctrl-C."""

import argparse
import contextlib
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import ModuleType

from rich.console import Console

from cli.output import show_step
from cli.paths import DIRECTORY, CommandError
from local.stack.stack import REQUIRED_PROCESSES, Stack, StackNotRunning

PHONE = "+14155550123"  # reserved for fiction

console = Console(highlight=False)


def main(args: argparse.Namespace) -> int:
    """Start, play the demo crowd, and wait. Returns 1 when a required part died."""
    stack = Stack(args.dir)
    began = time.monotonic()
    stack.up(
        port=args.port,
        attached=not args.detach,
        redis_cluster=args.redis_cluster,
        step=show_step,
    )
    console.print(f"[dim]ready in {time.monotonic() - began:.0f} s[/dim]\n")
    try:
        if not args.no_demo:
            with interrupt_when_stopped(stack):
                _load_demo().play(stack)
        show_welcome(stack, detached=args.detach, demo=not args.no_demo)
        if args.detach:
            return 0
        return wait_until_stopped(stack)
    except KeyboardInterrupt:
        console.print()
        return 0
    finally:
        if not args.detach or not _is_running(stack):
            stop(stack)


@contextlib.contextmanager
def interrupt_when_stopped(stack: Stack) -> Iterator[None]:
    """Interrupt the block when another command stops the stack."""
    stopped = threading.Event()

    def watch() -> None:
        while not stopped.wait(0.2):
            if not (stack.directory / "stack.json").exists():
                os.kill(os.getpid(), signal.SIGINT)
                return

    # A background job of a shell starts with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stopped.set()
        watcher.join()
        signal.signal(signal.SIGINT, before)


def show_welcome(stack: Stack, *, detached: bool, demo: bool) -> None:
    """Print the URL and commands to paste: sign in, and use the demo crowd if it played."""
    python = os.path.relpath(sys.executable)
    command = f"{python} -m local" + (
        "" if stack.directory == DIRECTORY else f" --dir {stack.directory}"
    )
    url, json_ = stack.base_url, "-H 'Content-Type: application/json'"
    demo_id = _load_demo().FIRST_ID
    bearer = '-H "Authorization: Bearer $TOKEN"'
    lines = [
        f"[bold]{stack.web_url}[/bold]  the web app: sign in with any phone number",
        f"[bold]{stack.web_url}/console/[/bold]  the console: a button signs in an operator",
        f"[bold]{url}[/bold]  the API",
        "",
        f"  curl {url}/health",
        f'  CHALLENGE=$(curl -s {url}/auth/codes {json_} -d \'{{"phone": "{PHONE}"}}\''
        " | cut -d '\"' -f 4)",
        f"  CODE=$({command} sms {PHONE})",
        f"  curl {url}/auth/sessions {json_}"
        ' -d \'{"challenge": "\'$CHALLENGE\'", "code": "\'$CODE\'"}\'',
        f"  TOKEN=$({command} token --user 7)",
    ]
    if demo:
        lines += [
            f"  curl -X PUT {url}/posts/{demo_id}/likes/me {bearer}",
            f"  curl {url}/posts/{demo_id}/likers?order=latest",
            f"  curl -X PUT {url}/users/{demo_id}/followers/me {bearer}",
            f"  curl {url}/users/{demo_id}",
            f"  curl {url}/shop-types",
            f"  curl '{url}/shops?x=13.405&y=52.52'",
            f"  curl {url}/posts/ranking",
            f'  curl {url}/feed -H "Authorization: Bearer $({command} token --user {demo_id})"',
        ]
    lines += [
        f"  {command} replay FILE.csv.gz --duplicates 0.2",
        "",
        f"  {command} audit | status | logs -f",
        "",
        f"[dim]{stack.stop_command()} stops it[/dim]" if detached else "[dim]Ctrl-C stops it[/dim]",
    ]
    for line in lines:
        console.print(line, soft_wrap=True)


def wait_until_stopped(stack: Stack) -> int:
    """Wait until ``down`` ends the stack (0) or a required part dies by itself (1).

    A database that stops is only reported: Plaza survives that.
    """
    down: set[str] = set()
    while (stack.directory / "stack.json").exists():
        ended = {process.name for process in stack.processes() if not process.is_running()}
        if not (stack.directory / "stack.json").exists():
            break
        for name in sorted(ended - down):
            console.print(f"[red]{name} is down[/red]; its log: {stack.directory}/logs/{name}.log")
        for name in sorted(down - ended):
            console.print(f"[green]{name} is back[/green]")
        if not REQUIRED_PROCESSES.isdisjoint(ended):
            return 1
        down = ended
        time.sleep(0.5)
    return 0


def stop(stack: Stack) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    with console.status("stopping"):
        stack.down()
    console.print("stopped")


def _load_demo() -> ModuleType:
    """Import the demo crowd late: it needs the layer, other commands do not."""
    return importlib.import_module("local.load.demo")


def _is_running(stack: Stack) -> bool:
    try:
        Stack.load(stack.directory)
    except (StackNotRunning, CommandError):
        return False
    return True
