"""``cluster-failover``: a master of the Redis Cluster ends in the middle of a replay.

What clients saw of it, what was acknowledged and lost, and what had to be repaired.
"""

import argparse
import json
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from local.audit import audit
from local.load.interactions import Interaction, Interactions
from local.load.replay import Options, Report, read_scenario, replay, show_replay
from local.load.scenario import Scenario
from local.output import console, new_summary, print_report, progress_console
from local.paths import LocalError
from local.stack.cluster import Cluster, connect_node
from local.stack.logs import read_lines
from local.stack.stack import Stack

UNREPLICATED_S = 2.0
FIRST_TOGGLER = 9_800_001
TOGGLERS = 40
TOGGLED_POSTS = 5
SLOT_KEY = "{7}"  # any master will do: the one that has this tag
_REPAIRS = ("targets_resynced",)
_FUNCTIONS = ("ReactionsApi", "FollowsApi", "SaveReactions", "AcknowledgeReactions", "SweepOutbox")
_EVENTS = (
    *_REPAIRS,
    "failover_detected",
    "provisional_accepted",
    "publish_postponed",
    "acknowledgement_postponed",
)


@dataclass(frozen=True, slots=True)
class FailoverReport:
    """What came of it. ``took_s``: until all nodes knew the new master; ``events`` by name."""

    how: str
    took_s: float
    report: Report
    events: Counter[str]

    @property
    def lost(self) -> list[str]:
        """What was acknowledged and is not in MySQL, or the other way round."""
        return list(self.report.compared.differences)

    @property
    def clean(self) -> bool:
        """Nothing is lost, nothing was refused for good, all agree, no answer was a 500."""
        told = self.report.tally
        return self.report.audit_report.clean and not (
            self.lost or told.failures or told.statuses[500]
        )

    def to_json(self) -> dict[str, Any]:
        """For a machine."""
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
            "changed_otherwise_than_foreseen": len(tally.wrong),
            "drift": self.report.audit_report.drift,
            "audit": self.report.audit_report.to_json(),
        }


def main(stack: Stack, args: argparse.Namespace) -> int:
    """Play a file, or toggles; end a master halfway. 1 unless nothing came of it.

    Raises LocalError.
    """
    options = Options(concurrency=args.concurrency)
    name = args.file.name if args.file else "toggles"
    scenario: Scenario = Interactions(make_toggles(args.limit))
    if args.file:
        scenario = read_scenario(args.file, options, args.limit)
    out = progress_console(args)
    found = replay_with_failover(stack, name, scenario, args.how, args.concurrency, out=out)
    return print_report(args, found, show)


def replay_with_failover(
    stack: Stack,
    name: str,
    scenario: Scenario,
    how: str,
    concurrency: int,
    *,
    out: Console = console,
) -> FailoverReport:
    """Play a scenario; halfway a master ends, as ``how`` says. Raises LocalError.

    The sweeper, which notices the failover at its next run, is invoked instead of waited for.
    """
    nodes, took_s = stack.redis, 0.0
    if not isinstance(nodes, Cluster):
        raise LocalError("this stack has no cluster of its own: `up --redis-cluster`")
    since_ms = int(time.time() * 1000)
    stack.invoke("SweepOutbox", {})  # it notes which masters there are

    def trouble() -> None:
        nonlocal took_s
        took_s = stop_master(nodes, how)
        stack.invoke("SweepOutbox", {})

    options = Options(concurrency=concurrency, halfway=trouble)
    try:
        report = replay(stack, name, scenario, options, out=out)
    finally:
        nodes.resume()
        nodes.start(attached=False)  # as the stack's own, which ends it
    return FailoverReport(how, took_s, report, count_events(stack, since_ms))


def make_toggles(count: int) -> list[Interaction]:
    """Contrary wants for the same few likes, in order: like, unlike, like ... each user in turn."""
    pairs = [
        (FIRST_TOGGLER + user, FIRST_TOGGLER + post)
        for post in range(TOGGLED_POSTS)
        for user in range(TOGGLERS)
    ]
    return [
        Interaction(*pairs[turn % len(pairs)], 1.0 if turn // len(pairs) % 2 else 4.0, turn)
        for turn in range(count)
    ]


def stop_master(nodes: Cluster, how: str) -> float:
    """Let one master end; in how many seconds all knew that another has its slots."""
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
    """How often functions told of what a failover may lead to."""
    counts: Counter[str] = Counter()
    for _, _, text in read_lines(stack.directory, _FUNCTIONS, since_ms):
        try:
            event = json.loads(text).get("event")
        except (ValueError, AttributeError):
            continue
        if event in _EVENTS:
            counts[event] += 1
    return counts


def show(found: FailoverReport, out: Console) -> None:
    """Print what was played, the figures, and the audit."""
    told = found.to_json()
    answers = ", ".join(f"{n:,} x {status}" for status, n in told["statuses"].items())
    repairs = ", ".join(f"{n:,} {name}" for name, n in sorted(found.events.items()))
    facts = new_summary(
        ("a master", f"{found.how}, another after {told['new_master_after_s']:g} s", ""),
        ("answers", answers, "500" not in told["statuses"]),
        ("no answer", f"{told['unanswered']:,}", not told["unanswered"]),
        ("longest time without a 200", f"{told['longest_without_200_s']:.2f} s", ""),
        ("longest time without a 2xx", f"{told['longest_without_2xx_s']:.2f} s", ""),
        ("longest request", f"{told['longest_request_s']:.2f} s", ""),
        ("acknowledged", f"{told['acknowledged']:,}", ""),
        ("lost", f"{told['lost']:,}", not told["lost"]),
        ("repaired", f"{told['repaired']:,} targets ({repairs})", ""),
        ("drift", f"{told['drift']:,}", not told["drift"]),
    )
    show_replay(found.report, out)
    out.print("\n[bold]the failover[/bold]")
    out.print(facts)
    out.print("\n[bold]audit of everything[/bold]")
    out.print(audit.render(found.report.audit_report))
