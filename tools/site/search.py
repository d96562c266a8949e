"""What the search of the site does besides: it understands questions, and ranks pages.

The theme has no setting for either, so its script is extended: ``search.js`` follows it, and sorts
what it found. The build fails if a new version of the theme has no line to sort at.
"""

from pathlib import Path

from cli.paths import CommandError

ADDED = Path(__file__).parent / "search.js"
_SORT = "l.items.sort("


def extend_search(html: Path) -> None:
    """Extend the search of a built site. Raises CommandError if its script is another one."""
    scripts = list((html / "assets" / "javascripts" / "workers").glob("search.*.js"))
    for script in scripts:
        text = script.read_text()
        if text.count(_SORT) != 1:
            raise CommandError(f"tools/site/search.py does not know {script.name}")
        start = text.index(_SORT)
        end = _end_of_call(text, start + len(_SORT))
        text = f"{text[:start]}self.sortResults({text[start:end]}){text[end:]}"
        script.write_text(f"{text}\n{ADDED.read_text()}")
    if not scripts:
        raise CommandError("the site has no script of a search")


def _end_of_call(text: str, at: int) -> int:
    """Return the end of the call whose parenthesis was opened before ``at``."""
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return at
