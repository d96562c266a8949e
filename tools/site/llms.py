"""The site for programs that read: ``llms.txt``, a list of its pages by https://llmstxt.org, and
the Markdown of each page beside it."""

import re
import shutil
from pathlib import Path

from tools.site.pages import CODE, LINK

_PARTS = (
    ("Start", ("index.md", "when-to-use.md", "troubleshooting.md", "upgrading.md")),
    ("Guides", ("guides/*.md",)),
    ("API", ("api.md", "problems.md", "live-numbers.md", "notifications.md", "clients.md")),
    ("Reference", ("reference.md", "reference/*.md")),
    ("Operations", ("operations.md", "runbooks/README.md", "working-against-a-stack.md")),
    ("Concepts", ("map.md", "architecture.md", "ordering.md")),
    ("Optional", ("limits.md", "scaling.md", "glossary.md", "changelog.md")),
)
"""Title -> pages. Readers with little room leave out *Optional*."""
_ALTERNATE = '<link rel="alternate" type="text/markdown" href="{}">'


def write_twins(pages: Path, html: Path) -> None:
    """Write the Markdown of all pages beside them, and the list."""
    for page in pages.rglob("*.md"):
        path = page.relative_to(pages)
        (html / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, html / path)
        name = "index.html" if path.name == "README.md" else f"{path.stem}.html"
        rendered = html / path.with_name(name)
        head = f"{_ALTERNATE.format(path.name)}</head>"
        rendered.write_text(rendered.read_text().replace("</head>", head, 1))
    (html / "llms.txt").write_text(list_pages(pages))


def list_pages(pages: Path) -> str:
    """Return the list: the title and the first sentence of each page."""
    lines = ["# Plaza", "", f"> {describe(pages / 'index.md')}"]
    for title, patterns in _PARTS:
        lines += ["", f"## {title}", ""]
        for page in (page for pattern in patterns for page in sorted(pages.glob(pattern))):
            name = re.sub(r"^# ", "", page.read_text().splitlines()[0]).replace("`", "")
            lines.append(f"- [{name}]({page.relative_to(pages)}): {describe(page)}")
    return "\n".join(lines) + "\n"


def describe(page: Path) -> str:
    """Return the first sentence of a page, without links."""
    text = CODE.sub(lambda match: match[0].strip("`"), page.read_text())
    paragraphs = re.split(r"\n\s*\n", text)
    first = next(
        (part for part in paragraphs if re.match(r"[\w\[\"']", part.strip())), paragraphs[0]
    )
    plain = LINK.sub("", " ".join(first.split()).replace("**", ""))
    plain = re.sub(r"!?\[([^\]]*)\]?", r"\1", plain)
    return re.split(r"(?<=[.:?])\s", plain)[0].rstrip(":")
