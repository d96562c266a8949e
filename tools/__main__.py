"""``python -m tools``: generate, lock, build and check what the repository holds."""

import argparse
from pathlib import Path

from cli.commands import add_command, add_flag, add_number, make_parser, run_program
from cli.paths import DIRECTORY


def build_parser() -> argparse.ArgumentParser:
    """Return the parser. It imports no command: some run without the packages of others."""
    parser, commands = make_parser("tools", __doc__)

    def add(name: str, module: str, text: str) -> argparse.ArgumentParser:
        return add_command(commands, name, f"tools.{module}", text)

    sub = add("generate", "generate", "write all generated files")
    add_flag(sub, "--check", "list those that would change instead")

    add("contract", "contract", "generate functions/api/system/openapi.json from the routes")

    add("template", "template.blocks", "write what follows from the code into template.yaml")

    sub = add("alarms", "runbooks", "generate alarms.json from alarms.yaml")
    add_flag(sub, "--expand", "print template.yaml with its alarms instead")

    sub = add("balancer", "balancer", "generate deploy/balancer-rules.json from the routes")
    add_flag(sub, "--expand", "print deploy/balancer.yaml with its rules instead")

    sub = add_command(
        commands, "expand", "cli.includes", "insert the file that a template includes into it"
    )
    sub.add_argument("file", type=Path, help="the template, which is changed")

    sub = add("budget", "budget", "print resources, MB of the layer and ms of first requests")
    sub.add_argument("--since", default="main", help="commit to compare with (default: main)")
    add_flag(sub, "--cold", "measure first requests, too; it takes minutes")

    add("bytecode", "bytecode", "list the modules whose bytecode the layer has in compiled.txt")
    add("docs", "site.build", "build the documentation site into .site/html")
    sub = add(
        "lighthouse", "lighthouse.run", "print what Lighthouse finds in app, console and site"
    )
    add_number(sub, "--runs", 3, "runs of each page, of which the median counts")
    choices = ("app", "console", "site")
    sub.add_argument("what", nargs="*", choices=choices, help="default: all")
    sub.add_argument(
        "--dir", type=Path, default=DIRECTORY, help="directory of the stack (default: .local)"
    )

    add("roles", "roles", "print the routes by the roles that may call them")

    add("samples", "envelopes", "write the sample events of events/ from events/samples.yaml")

    sub = add("events", "samples", "write the sample events with tokens and ids of a local stack")
    sub.add_argument(
        "--dir", type=Path, default=DIRECTORY, help="directory of the stack (default: .local)"
    )
    add_flag(sub, "--clean", "delete the dead letters of invoked samples instead")

    sub = add("shared-events", "shared_events", "put the sample events as shareable test events")
    sub.add_argument("environment", help="name of the environment, such as staging")
    sub.add_argument("pattern", nargs="?", default="*", help="of the samples (default: all)")
    add_flag(sub, "--clean", "delete the dead letters of invoked samples instead")

    sub = add("lines", "lines", "print the code lines by folder")
    sub.add_argument("--against", metavar="COMMIT", help="commit to compare with")

    sub = add("lock", "lock", "lock the dependencies of pyproject.toml, with hashes")
    add_flag(sub, "--upgrade", "take the newest versions")

    sub = add("node", "node", "run npm or node of the build tools: node npm ci")
    sub.add_argument("words", nargs=argparse.REMAINDER, help="npm or node, and its arguments")

    sub = add("release", "release", "print the notes of this version from CHANGELOG.md")
    sub.add_argument("tag", nargs="?", help="must be v and the version")

    sub = add("walk", "walk", "print the functions of plaza/ that one request enters")
    sub.add_argument("method", help="such as PUT")
    sub.add_argument("path", help="of a sample event, such as /posts/11/likes/me")
    add_flag(sub, "--cold", "empty Redis before, so that the request loads its target")

    add("reproducible", "reproducible", "build twice from nothing and compare all bytes")
    return parser


if __name__ == "__main__":
    run_program(build_parser())
