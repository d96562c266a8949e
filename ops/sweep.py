"""``sweep``: send entries of outboxes again, now."""

import argparse
import json

from ops.dead_letters import OPERATOR
from ops.environment import use_environment
from plaza.operate.operator_commands import sweep_now


def main(args: argparse.Namespace) -> int:
    """Sweep until nothing is due. ``--everything`` sends all once more, which never ends."""
    reactions = checkins = 0
    with use_environment(args):
        while True:
            swept = sweep_now.sweep_now(args.everything, operator_id=OPERATOR)
            reactions, checkins = reactions + swept.reactions, checkins + swept.checkins
            if args.everything or not any(swept):
                break
    if args.json:
        print(json.dumps({"reactions": reactions, "checkins": checkins}))
    else:
        print(f"{reactions:,} reactions and {checkins:,} check-ins sent again")
    return 0
