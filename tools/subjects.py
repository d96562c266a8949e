"""Checks the subjects of commits: at most 72 characters, and no work in progress.

  python3 tools/subjects.py BEFORE AFTER     the commits of a push; BEFORE may be unknown
  python3 tools/subjects.py --message FILE   a message that git is about to use

It imports nothing of Plaza, so that CI and git run it before `make setup`.
"""

import re
import subprocess
import sys
from pathlib import Path

MAX_LENGTH = 72
_WORK_IN_PROGRESS = re.compile(r"(wip(?![a-z])|(fixup|squash|amend)!)", re.IGNORECASE)


def find_fault(subject: str) -> str | None:
    """Return what is wrong with a subject, or None."""
    if _WORK_IN_PROGRESS.match(subject):
        return "is of work in progress"
    if len(subject) > MAX_LENGTH:
        return f"has {len(subject)} characters; {MAX_LENGTH} are allowed"
    return None


def list_subjects(before: str, after: str) -> list[str]:
    """Return the subjects of the commits of a push. Subjects of merges are git's own.

    A push of a new branch has zeros as ``before``, and after a forced push the commit may be
    missing: then only ``after`` is returned. Raises CalledProcessError if ``after`` is missing.
    """
    log = ["git", "log", "--no-merges", "--format=%s"]
    is_known = subprocess.run(
        ["git", "cat-file", "-e", f"{before}^{{commit}}"], capture_output=True, check=False
    )
    commits = ["-1", after] if is_known.returncode else [f"{before}..{after}"]
    completed = subprocess.run([*log, *commits, "--"], capture_output=True, text=True, check=True)
    return completed.stdout.splitlines()


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--message", file]:
            subjects = Path(file).read_text().splitlines()[:1]
        case [before, after]:
            subjects = list_subjects(before, after)
        case _:
            sys.exit(__doc__)
    faults = [(subject, fault) for subject in subjects if (fault := find_fault(subject))]
    for subject, fault in faults:
        print(f"{subject!r} {fault}", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
