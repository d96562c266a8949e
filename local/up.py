"""``up``: start the stack, show the progress, run until Ctrl-C."""

import argparse
import contextlib
import importlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from cli.output import show_step
from cli.paths import CommandError
from local.stack.servers import connect_mysql
from local.stack.stack import REQUIRED_PROCESSES, Stack, StackNotRunning

PHONE = "+14155550123"  # reserved for fiction

COMMANDS = "commands.txt"
BOX_WIDTH = 80

console = Console(highlight=False)


def use_declared(target_types: str, kinds: str) -> None:
    """Let Plaza in this process have the types of targets and the kinds that the stack will have,
    which it reads once. Raises CommandError, with the field's name, for a wrong value."""
    os.environ["PLAZA_TARGET_TYPES"], os.environ["PLAZA_KINDS"] = target_types, kinds
    from plaza.infra.runtime.settings import BadSettings

    try:
        from plaza.core.reactions.kinds import parse_kinds

        parse_kinds(kinds)
    except BadSettings as error:
        raise CommandError(str(error)) from None


def main(args: argparse.Namespace) -> int:
    """Start, play the demo crowd on empty stores, and wait. Returns 1 when a required part died."""
    stack = Stack(args.dir)
    declared = {"TargetTypes": args.target_types or "{}", "Kinds": args.kinds or "{}"}
    if args.target_types or args.kinds:
        use_declared(*declared.values())
    for signum in (signal.SIGHUP, signal.SIGTERM):  # a closed terminal, too, is an orderly end
        if signal.getsignal(signum) is not signal.SIG_IGN:
            signal.signal(signum, signal.default_int_handler)
    began = time.monotonic()
    stack.up(
        port=args.port,
        attached=not args.detach,
        keep=not args.redis_cluster,
        redis_cluster=args.redis_cluster,
        parameters=declared,
        step=show_step,
    )
    console.print(f"[dim]ready in {time.monotonic() - began:.0f} s[/dim]\n")
    try:
        if not args.no_demo:
            play_demo(stack)
        show_welcome(stack, detached=args.detach)
        if args.detach:
            return 0
        return wait_until_stopped(stack)
    except KeyboardInterrupt:
        console.print()
        return 0
    finally:
        if not args.detach or not _is_running(stack):
            stop(stack)


def play_demo(stack: Stack) -> None:
    """Play the demo crowd unless there are users. Its report goes to a file. Raises CommandError
    unless it is clean."""
    if not is_empty(stack):
        console.print("[dim]the stores have data: no demo crowd[/dim]\n")
        return
    report = stack.directory / "logs" / "demo.txt"
    with interrupt_when_stopped(stack), report.open("w") as file:
        summary = _load_demo().play(stack, Console(file=file, width=100, highlight=False))
    console.print(f"{summary} [dim]({_relative(report)})[/dim]\n", soft_wrap=True)


def is_empty(stack: Stack) -> bool:
    """Return whether there are no users. One statement."""
    with closing(connect_mysql(stack.mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT 1 FROM user)")
        return cursor.fetchone() == (0,)


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


def show_welcome(stack: Stack, *, detached: bool) -> None:
    """Print the URLs in a box, and write commands to paste to a file."""
    commands = stack.directory / COMMANDS
    commands.write_text("\n".join(make_commands(stack)) + "\n")
    rows = Table.grid(padding=(0, 2))
    for name, url, note in (
        ("web app", f"{stack.web_url}/", "any phone number signs in"),
        ("console", f"{stack.web_url}/console/", "a button signs in"),
        ("API", stack.base_url, f"curl lines: {_relative(commands)}"),
    ):
        rows.add_row(name, f"[bold]{url}[/bold]", f"[dim]{note}[/dim]")
    command = stack.stop_command().strip("`") if detached else "Ctrl-C"
    end = f"{command} stops it; the data stays until `make fresh`"
    width = min(BOX_WIDTH, console.width)
    console.print(Panel(rows, title="Plaza", subtitle=end, width=width, padding=(0, 1)))


def make_commands(stack: Stack) -> list[str]:
    """Return commands to paste: sign in, and use what the demo crowd made."""
    command = stack.command("").rstrip()
    url, json_ = stack.base_url, "-H 'Content-Type: application/json'"
    demo_id = _load_demo().FIRST_ID
    bearer = '-H "Authorization: Bearer $TOKEN"'
    return [
        f"curl {url}/health",
        "",
        "# sign in",
        f'CHALLENGE=$(curl -s {url}/auth/codes {json_} -d \'{{"phone": "{PHONE}"}}\''
        " | cut -d '\"' -f 4)",
        f"CODE=$({command} sms {PHONE})",
        f"curl {url}/auth/sessions {json_}"
        ' -d \'{"challenge": "\'$CHALLENGE\'", "code": "\'$CODE\'"}\'',
        "",
        "# what the demo crowd made",
        f"TOKEN=$({command} token --user 7)",
        f"curl -X PUT {url}/posts/{demo_id}/likes/me {bearer}",
        f"curl {url}/posts/{demo_id}/likers?order=latest",
        f"curl -X PUT {url}/users/{demo_id}/followers/me {bearer}",
        f"curl {url}/users/{demo_id}",
        f"curl {url}/shop-types",
        f"curl '{url}/shops?x=13.405&y=52.52'",
        f"curl {url}/posts/ranking",
        f'curl {url}/feed -H "Authorization: Bearer $({command} token --user {demo_id})"',
        "",
        "# load, and the check that all stores agree",
        f"{command} replay FILE.csv.gz --duplicates 0.2",
        f"{command} audit",
        f"{command} status",
        f"{command} logs -f",
    ]


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
    console.print("stopped; the data stays: `make run` goes on with it, `make fresh` deletes it")


def fresh(args: argparse.Namespace) -> int:
    """Delete the data that the runs before left. Raises CommandError while a stack runs."""
    print("deleted the data" if Stack(args.dir).empty() else "there was no data")
    return 0


def _relative(path: Path) -> str:
    """Return a path as it is shortest from here."""
    return min(str(path), os.path.relpath(path), key=len)


def _load_demo() -> ModuleType:
    """Import the demo crowd late: it needs the layer, other commands do not."""
    return importlib.import_module("local.load.demo")


def _is_running(stack: Stack) -> bool:
    try:
        Stack.load(stack.directory)
    except (StackNotRunning, CommandError):
        return False
    return True
