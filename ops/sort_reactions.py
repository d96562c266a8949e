"""``sort-reactions``: fill the sorted lists of large targets, and drop the index they replace."""

import argparse
import json

from cli.paths import CommandError
from ops.environment import use_environment
from plaza.infra.runtime.clock import Deadline
from plaza.reactions import sorted_lists
from plaza.reactions.model import IndexNeeded

_STEP_S = 10.0


def main(args: argparse.Namespace) -> int:
    """Fill all lists; with ``--drop-index`` drop the index then. Raises CommandError."""
    count, left, dropped = 0, None, False
    with use_environment(args):
        while True:
            sorted_now, left = sorted_lists.sort_all(left, Deadline.in_s(_STEP_S))
            count += sorted_now
            if left is None:
                break
        if args.drop_index:
            try:
                dropped = sorted_lists.drop_index()
            except IndexNeeded as error:
                raise CommandError(str(error)) from None
    if args.json:
        print(json.dumps({"sorted": count, "index_dropped": dropped}))
    else:
        print(f"{count:,} lists filled" + (", index by_target dropped" if dropped else ""))
    return 0
