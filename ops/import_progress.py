"""What imports share: the progress in a file, which is stored, and the account of its lines."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cli.files import count_lines
from cli.paths import CommandError
from plaza.infra.runtime.settings import BadSettings, settings

SHOWN = 20
"""Bad lines and differing totals that a report lists."""

_FORMAT = 2  # of the progress: another one is not continued


@dataclass(slots=True)
class Progress:
    """The progress of an import: up to which ``line`` of the file each one was stored, refused
    (``bad``) or ``empty``; a header is none of them. ``checked``: all lines were checked before."""

    checked: bool = False
    line: int = 0
    stored: int = 0
    changed: int = 0
    bad: int = 0
    empty: int = 0

    @classmethod
    def load(cls, file: Path) -> "Progress":
        """Return the stored progress, a new one if there is none."""
        return cls(**json.loads(file.read_text())) if file.exists() else cls()

    def save(self, file: Path) -> None:
        """Replace the stored progress in one step."""
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(file)

    def require_all_lines(self, path: Path, headers: int) -> int:
        """Return the number of lines of a file. Raises CommandError unless each line is a header,
        stored, refused or empty."""
        lines = count_lines(path)
        read = headers + self.stored + self.bad + self.empty
        if lines != read:
            raise CommandError(
                f"{path.name} has {lines:,} lines, but {read:,} were read: it changed during the"
                " import. Run the command again."
            )
        return lines


def locate(directory: Path, path: Path, *parts: Any) -> Path:
    """Return where the progress of an import of this file, unchanged, into these servers is stored.
    ``parts``: what else an import depends on. Raises CommandError."""
    try:
        stat, mysql = path.stat(), settings().mysql
    except (OSError, BadSettings) as error:
        raise CommandError(str(error)) from None
    of_file = [_FORMAT, str(path.resolve()), stat.st_size, stat.st_mtime_ns, *parts]
    servers = [mysql.host, mysql.port, mysql.database]
    name = hashlib.sha256(json.dumps([of_file, servers]).encode()).hexdigest()[:16]
    return directory / f"{name}.json"


def show_some(bad: Sequence[tuple[int, str]], shown: list[str]) -> None:
    """Add the first of these (line, problem) to the lines that a report lists."""
    shown += [f"line {line}: {text}" for line, text in bad[: SHOWN - len(shown)]]
