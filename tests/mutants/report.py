"""The tables of docs/mutants.md."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from cli.paths import ROOT
from tests.mutants.mutant import Mutant

PAGE = ROOT / "docs" / "mutants.md"
BEGIN, END = "<!-- mutants: begin -->\n", "<!-- mutants: end -->\n"


def render(mutants: Sequence[Mutant]) -> str:
    """Return the tables for a run in which each mutant that is not equivalent was killed."""
    equivalent = [mutant for mutant in mutants if mutant.equivalent]
    killed = len(mutants) - len(equivalent)
    lines = [
        f"{len(mutants)} mutants: {killed} killed, {len(equivalent)} equivalent, 0 survived.",
        "",
        "| file | mutants | killed | equivalent |",
        "|---|---|---|---|",
    ]
    for file, group in groupby(sorted(mutants, key=lambda m: m.file), key=lambda m: m.file):
        of_file = list(group)
        same = sum(bool(mutant.equivalent) for mutant in of_file)
        lines.append(f"| `{file}` | {len(of_file)} | {len(of_file) - same} | {same} |")
    lines += ["", "| equivalent mutant | its change | why no test can find it |", "|---|---|---|"]
    lines += [
        f"| `{mutant.name}` | {_in_cell(mutant.breaks)} | {_in_cell(mutant.equivalent)} |"
        for mutant in equivalent
    ]
    return "\n".join(lines) + "\n"


def write(mutants: Sequence[Mutant]) -> None:
    """Replace the tables of the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{render(mutants)}{END}{after}")


def read() -> str:
    """Return the tables of the page."""
    _, _, rest = PAGE.read_text().partition(BEGIN)
    return rest.partition(END)[0]


def _in_cell(text: str) -> str:
    return text.replace("|", "\\|")
