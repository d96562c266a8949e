"""Session tokens for tests: ``python -m tests.e2e.token_process DIRECTORY``.

Reads lines ``ID ROLE`` from stdin and writes a token for each to stdout; logs go to stderr. One
process serves all tests, because its start takes longer than most of them.
"""

import os
import sys
from pathlib import Path

from cli.paths import add_layer_to_path
from local.stack.stack import Stack
from local.stack.tokens import open_sessions


def main() -> None:
    """Write tokens until stdin is closed."""
    add_layer_to_path()
    tokens = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr
    stack = Stack.load(Path(sys.argv[1]), require_all=False)
    for line in sys.stdin:
        user_id, role = line.split()
        [token] = open_sessions(stack, [int(user_id)], role)
        print(token, file=tokens, flush=True)


if __name__ == "__main__":
    main()
