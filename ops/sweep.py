"""``sweep``: send entries of outboxes again, now."""

import argparse
import json
from collections import Counter

from ops.dead_letters import OPERATOR
from ops.environment import use_environment
from plaza.operate.operator_commands import sweep_now


def main(args: argparse.Namespace) -> int:
    """Sweep until nothing is due. ``--everything`` sends all once more, which never ends."""
    total = Counter[str]()
    with use_environment(args):
        while True:
            swept = sweep_now.sweep_now(args.everything, operator_id=OPERATOR)
            total.update(swept)
            if args.everything or not any(swept.values()):
                break
    if args.json:
        print(json.dumps(total))
    else:
        numbers = " and ".join(f"{number:,} {outbox}" for outbox, number in total.items())
        print(f"{numbers} sent again")
    return 0
