"""Inserts the file that a template includes (``AWS::Include``), as CloudFormation would.

``python -m tools expand FILE`` does so in place. SAM adds a key to each entry of Resources, so to
``Fn::Transform``, too, where CloudFormation documents no other key than Name and Parameters. So a
deploy sends templates without the include, and linters see all resources.
"""

import argparse
import re
from pathlib import Path

_INCLUDE = re.compile(
    r"^  Fn::Transform:\n(?=(?:    .*\n)*?    Name: AWS::Include\n)(?P<body>(?:    .*\n)+)", re.M
)
_LOCATION = re.compile(r"\bLocation: (?P<file>[\w./-]+)")
_UNCHECKED = re.compile(r"    config: \{ ignore_checks: .* \}\n")


def main(args: argparse.Namespace) -> None:
    args.file.write_text(insert_included(args.file.read_text(), args.file.parent))


def insert_included(template: str, folder: Path) -> str:
    """Return a template with the resources of the file that it includes, if it includes one.

    ``folder`` is the template's, which the file's path is relative to. The file has an entry a
    line, as generators write it.
    """
    if (include := _INCLUDE.search(template)) is None:
        return template
    location = _LOCATION.search(include["body"])
    if location is None:
        raise ValueError(f"no location in {include['body']!r}")
    _brace, *entries, _last = (folder / location["file"]).read_text().splitlines()
    text = "".join(f"{entry.removesuffix(',')}\n" for entry in entries)
    expanded = template[: include.start()] + text + template[include.end() :]
    return _UNCHECKED.sub("    config: {}\n", expanded)
