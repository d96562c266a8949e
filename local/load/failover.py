"""``cluster-failover``: a master of the Redis Cluster fails in the middle of a replay.

Reports the answers to clients, the reactions that were lost, and the repairs.
"""

import argparse
import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from cli.output import console, new_summary, print_report, progress_console
from cli.paths import CommandError
from local.audit import audit
from local.load.interactions import Interaction, Interactions
from local.load.player import Player
from local.load.replay import Options, Report, read_scenario, replay, show_replay
from local.load.scenario import Scenario
from local.stack.cluster import Cluster, connect_node
from local.stack.logs import read_line, read_lines
from local.stack.stack import Stack

UNREPLICATED_S = 2.0
FIRST_TOGGLER = 9_800_001
TOGGLERS = 40
TOGGLED_POSTS = 5
SLOT_KEY = "{7}"  # the master of this hash tag fails; any other would do
_REPAIRS = ("targets_resynced",)
_FUNCTIONS = ("ReactionsApi", "FollowsApi", "SaveReactions", "AcknowledgeReactions", "SweepOutbox")
_EVENTS = (
    *_REPAIRS,
    "failover_detected",
    "provisional_accepted",
    "message_unsent",
    "acknowledgement_postponed",
)


@dataclass(frozen=True, slots=True)
class FailoverReport:
    """Result of a failover. ``took_s``: seconds until all nodes reported the new master."""

    how: str
    took_s: float
    report: Report
    events: Counter[str]

    @property
    def lost(self) -> list[str]:
        return list(self.report.compared.differences)

    @property
    def clean(self) -> bool:
        """Return whether nothing was lost, failed or answered with 500, and the audit is clean."""
        tally = self.report.tally
        return self.report.audit_report.clean and not (
            self.lost or tally.failures or tally.statuses[500]
        )

    def to_json(self) -> dict[str, Any]:
        tally = self.report.tally
        return {
            "clean": self.clean,
            "how": self.how,
            "new_master_after_s": round(self.took_s, 2),
            "statuses": {str(status): n for status, n in sorted(tally.statuses.items())},
            "unanswered": sum(n for why, n in tally.retries.items() if not why.isdigit()),
            "longest_without_200_s": round(tally.gaps_s["200"], 2),
            "longest_without_2xx_s": round(tally.gaps_s["good"], 2),
            "longest_request_s": round(max(tally.latencies_s, default=0), 2),
            "acknowledged": tally.accepted,
            "given_up": len(tally.failures),
            "lost": len(self.lost),
            "repaired": sum(self.events[name] for name in _REPAIRS),
            "events": dict(self.events),
            "unexpected_changes": len(tally.wrong),
            "drift": self.report.audit_report.drift,
            "audit": self.report.audit_report.to_json(),
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Play a file, or toggles, and stop a master halfway. Returns 1 unless the report is clean.

    Raises CommandError.
    """
    options = Options(concurrency=args.concurrency)
    name = args.file.name if args.file else "toggles"
    scenario: Scenario = Interactions(make_toggles(args.limit))
    if args.file:
        scenario = read_scenario(args.file, options, args.limit)
    out = progress_console(args)
    report = replay_with_failover(stack, name, scenario, args.how, args.concurrency, out=out)
    return print_report(args, report, show)


def replay_with_failover(
    stack: Stack,
    name: str,
    scenario: Scenario,
    how: str,
    concurrency: int,
    *,
    out: Console = console,
) -> FailoverReport:
    """Play a scenario; halfway a master stops in the manner of ``how``. Raises CommandError.

    The sweeper, which detects the failover on its next run, is invoked at once.
    """
    nodes, took_s = stack.redis, 0.0
    if not isinstance(nodes, Cluster):
        raise CommandError("this stack has no cluster of its own: `up --redis-cluster`")
    since_ms = int(time.time() * 1000)
    stack.invoke("SweepOutbox", {})  # it records the masters

    def trouble() -> None:
        nonlocal took_s
        took_s = stop_master(nodes, how)
        stack.invoke("SweepOutbox", {})

    async def trouble_halfway(player: Player) -> None:
        while player.tally.ended * 2 < len(scenario.requests):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(trouble)

    options = Options(concurrency=concurrency, meanwhile=trouble_halfway)
    try:
        report = replay(stack, name, scenario, options, out=out)
    finally:
        nodes.resume()
        nodes.start(attached=False)  # the stack ends it, not this process
    return FailoverReport(how, took_s, report, count_events(stack, since_ms))


def make_toggles(count: int) -> list[Interaction]:
    """Return alternating likes and unlikes of the same few posts, one user after the other."""
    pairs = [
        (FIRST_TOGGLER + user, FIRST_TOGGLER + post)
        for post in range(TOGGLED_POSTS)
        for user in range(TOGGLERS)
    ]
    return [
        Interaction(*pairs[n % len(pairs)], 1.0 if n // len(pairs) % 2 else 4.0, n)
        for n in range(count)
    ]


def stop_master(nodes: Cluster, how: str) -> float:
    """Stop one master. Returns the seconds until all nodes report another one."""
    master = nodes.master_of(SLOT_KEY)
    replica = nodes.replica_of(master)
    began_s = time.monotonic()
    match how:
        case "unreplicated":
            with nodes.lose_unreplicated_writes(SLOT_KEY):
                time.sleep(UNREPLICATED_S)
                began_s = time.monotonic()
            return time.monotonic() - began_s
        case "in-order":
            with connect_node(replica) as client:
                client.execute_command("CLUSTER", "FAILOVER")
        case "hang":
            master.pause()
        case _:
            master.kill()
    nodes.wait_for_master(SLOT_KEY, replica)
    took_s = time.monotonic() - began_s
    master.resume()
    return took_s


def count_events(stack: Stack, since_ms: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for _, _, text in read_lines(stack.directory, _FUNCTIONS, since_ms):
        event = (read_line(text) or {}).get("event")
        if event in _EVENTS:
            counts[event] += 1
    return counts


def show(outcome: FailoverReport, out: Console) -> None:
    values = outcome.to_json()
    answers = ", ".join(f"{n:,} x {status}" for status, n in values["statuses"].items())
    repairs = ", ".join(f"{n:,} {name}" for name, n in sorted(outcome.events.items()))
    summary = new_summary(
        ("a master", f"{outcome.how}, another after {values['new_master_after_s']:g} s", ""),
        ("answers", answers, "500" not in values["statuses"]),
        ("no answer", f"{values['unanswered']:,}", not values["unanswered"]),
        ("longest time without a 200", f"{values['longest_without_200_s']:.2f} s", ""),
        ("longest time without a 2xx", f"{values['longest_without_2xx_s']:.2f} s", ""),
        ("longest request", f"{values['longest_request_s']:.2f} s", ""),
        ("acknowledged", f"{values['acknowledged']:,}", ""),
        ("lost", f"{values['lost']:,}", not values["lost"]),
        ("repaired", f"{values['repaired']:,} targets ({repairs})", ""),
        ("drift", f"{values['drift']:,}", not values["drift"]),
    )
    show_replay(outcome.report, out)
    out.print("\n[bold]the failover[/bold]")
    out.print(summary)
    out.print("\n[bold]audit of everything[/bold]")
    out.print(audit.render(outcome.report.audit_report))
