"""``sms``: print the code of the last text to a phone. Only a local stack stores texts."""

import argparse
import re

from cli.paths import CommandError
from local.stack.stack import Stack, use_stack
from plaza.people.auth import sms
from plaza.people.auth.phones import parse_phone


def main(stack: Stack, args: argparse.Namespace) -> int:
    print(read_code(stack, args.phone))
    return 0


def read_code(stack: Stack, phone: str) -> str:
    """Return the code that was last sent to ``phone``. Raises CommandError without one."""
    with use_stack(stack):
        text = sms.read_echo(parse_phone(phone))
    match = re.search(r"\b[0-9]{6}\b", text or "")
    if match is None:
        raise CommandError(f"no code was sent to {phone} in the last five minutes")
    return match[0]
