"""``sort-reactions``: fill the sorted lists of large targets."""

import argparse
import json

from ops.environment import use_environment
from plaza.core.reactions import sorted_lists
from plaza.infra.runtime.clock import Deadline

_STEP_S = 10.0


def main(args: argparse.Namespace) -> int:
    """Fill all lists."""
    count, left = 0, None
    with use_environment(args):
        while True:
            sorted_now, left = sorted_lists.sort_all(left, Deadline.in_s(_STEP_S))
            count += sorted_now
            if left is None:
                break
    print(json.dumps({"sorted": count}) if args.json else f"{count:,} lists filled")
    return 0
