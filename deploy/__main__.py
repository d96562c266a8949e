"""``python -m deploy``: deploy and check an environment in AWS."""

import argparse

from cli.commands import add_command, add_flag, make_parser, run_program
from cli.operator_commands import add_operator_command


def build_parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser, commands = make_parser("deploy", __doc__)

    sub = add_command(commands, "up", "deploy.deploy", "deploy all stacks of an environment")
    sub.add_argument("environment", help="name of the environment, such as staging")
    sub.add_argument("values", nargs="*", metavar="Name=Value", help="parameters of templates")
    add_flag(sub, "--yes", "execute change sets without a question, for a shell without a terminal")
    add_flag(sub, "--replace-stores", "let this update delete or replace stores and their secrets")

    sub = add_command(commands, "operate", "deploy.operate", "run a command of an operator")
    sub.add_argument("environment", help="name of the environment, such as staging")
    add_operator_command(sub)

    sub = add_command(
        commands, "smoke", "deploy.smoke", "like, order, read and audit at a deployed URL"
    )
    target = sub.add_mutually_exclusive_group(required=True)
    target.add_argument("environment", nargs="?", help="name of the environment, such as staging")
    target.add_argument("--url", help="base URL of the API")
    return parser


if __name__ == "__main__":
    run_program(build_parser())
