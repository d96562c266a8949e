"""The pages of the site: copies of the documents, whose links lead to other copies.

Documents link to files as the repository has them. A page may link to another page; any other file
that a page links to, such as ``alarms.yaml``, is copied as a text file.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from cli.paths import CONTRACT, ROOT, CommandError

DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`", re.MULTILINE | re.DOTALL)
NAMES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    ".github/SECURITY.md": "reporting.md",
}
"""Document outside of docs/ -> its page."""


def copy_pages(pages: Path) -> None:
    """Write all pages and the files that they link to. Raises CommandError for a broken link."""
    todo = [ROOT / name for name in NAMES] + sorted(DOCS.rglob("*.md"))
    paths = {file: _path_of(file) for file in todo}
    for file in todo:  # grows: a document outside of docs/ becomes a page when one links to it
        text = file.read_text()
        for link, target in find_links(file, text):
            if target not in paths:
                paths[target] = _path_of(target)
                if target.suffix == ".md":
                    todo.append(target)
                else:
                    _copy(target, pages / paths[target])
            text = text.replace(f"]({link})", f"]({_relative(link, paths[file], paths[target])})")
        if file == GLOSSARY:
            text = drop_retired(text)
        (pages / paths[file]).parent.mkdir(parents=True, exist_ok=True)
        (pages / paths[file]).write_text(text)
    for file in DOCS.rglob("*"):
        if file.is_file() and file.suffix != ".md":
            _copy(file, pages / file.relative_to(DOCS))


def drop_retired(glossary: str) -> str:
    """Return the glossary without the words that it retired, which are for developers of Plaza."""
    text = glossary.replace(", and the words that they replaced. One\nword", ". One\nword")
    return re.sub(r"^(\|.*\|)[^|]*\|$", r"\1", text, flags=re.MULTILINE)


def find_links(file: Path, text: str) -> Iterator[tuple[str, Path]]:
    """Yield (link, target) of each link of a document to another file. Raises CommandError."""
    for _, link, _ in dict.fromkeys(LINK.findall(CODE.sub("", text))):
        path = link.partition("#")[0]
        if not path or re.match(r"[a-z]+:", link):
            continue
        target = (file.parent / path).resolve()
        if target.is_dir():
            target /= "README.md"
        if not target.is_file() or not target.is_relative_to(ROOT):
            raise CommandError(f"{file.relative_to(ROOT)} links to {link}, which does not exist")
        yield link, target


def _path_of(file: Path) -> PurePosixPath:
    """Return the path of a document or a file in the site."""
    if file.is_relative_to(DOCS):
        return PurePosixPath(file.relative_to(DOCS))
    path = PurePosixPath(file.relative_to(ROOT))
    if str(path) in NAMES:
        return PurePosixPath(NAMES[str(path)])
    if file == CONTRACT:
        return PurePosixPath("openapi.json")
    return PurePosixPath("files", path if file.suffix == ".md" else f"{path}.txt")


def _relative(link: str, page: PurePosixPath, target: PurePosixPath) -> str:
    up = ["..", *[".."] * (len(page.parent.parts) - 1)] if page.parent.parts else []
    return str(PurePosixPath(*up, target)) + "".join(link.partition("#")[1:])


def _copy(file: Path, target_path: Path) -> None:
    target_path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target_path)


def expand_navigation(configuration: str, pages: Path) -> str:
    """Return the configuration with the pages that ``"folder/"`` and ``"*"`` stand for: all that
    are not named."""

    def names(folder: Path) -> list[str]:
        files = sorted(folder.glob("*.md"), key=lambda file: (file.name != "README.md", file.name))
        return [str(file.relative_to(pages)) for file in files]

    def render(titles: list[str]) -> str:
        return ", ".join(f'"{name}"' for name in titles)

    unnamed = [name for name in names(pages) if f'"{name}"' not in configuration]
    configuration = re.sub(r',\s*"\*"', "".join(f', "{name}"' for name in unnamed), configuration)
    named = set(re.findall(r'"([\w./-]+\.md)"', configuration))
    return re.sub(
        r'"([a-z-]+)/"',
        lambda match: render([name for name in names(pages / match[1]) if name not in named]),
        configuration,
    )
