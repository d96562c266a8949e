"""Documents lead somewhere: their links resolve, their commands exist, their figures name one."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections.abc import Container
from pathlib import Path

import pytest

import deploy.__main__
import local.__main__
import ops.__main__
import tools.__main__
from bench.__main__ import BENCHES, STACK
from cli.paths import CONTRACT
from tests.unit.policy.modules import ROOT, tracked
from tests.unit.policy.test_wings import MAY_KNOW

DOCUMENTS = sorted(
    file
    for pattern in ("*.md", ".github/SECURITY.md", "docs/**/*.md", "*/README.md")
    for file in ROOT.glob(pattern)
    if ".venv" not in file.parts
)
LINK = re.compile(r"(?<!!)\[[^\]\n]+\]\(([^)\s]+)\)")
COMMAND = re.compile(r"\b(make|python -m [a-z0-9_.]+)((?: [^\s`|]+)?)")
OURS = tuple(
    f"python -m {package}" for package in ("bench", "deploy", "local", "ops", "tests", "tools")
)


def list_commands(parser: ArgumentParser) -> set[str]:
    return next(set(action.choices) for action in parser._actions if action.choices)


VERBS: dict[str, Container[str]] = {
    "make": re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE),
    "python -m deploy": list_commands(deploy.__main__.build_parser()),
    "python -m local": list_commands(local.__main__.build_parser()),
    "python -m ops": list_commands(ops.__main__.build_parser()),
    "python -m tools": list_commands(tools.__main__.build_parser()),
    "python -m bench": {*BENCHES, STACK},
}
"""Command -> the words that may follow it."""
every_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT))
)


def anchors_of(document: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a document."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


def code_of(document: Path) -> str:
    """What stands in code spans and code blocks, one a line; of the changelog, in what is new."""
    text = document.read_text()
    if document.name == "CHANGELOG.md":
        text = re.split(r"^## \[\d", text, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *(span.replace("\n", " ") for span in re.findall(r"`[^`]+`", rest))])


@every_document
def test_links_resolve(document: Path) -> None:
    broken = []
    for link in LINK.findall(document.read_text()):
        if re.match(r"https?:|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


def test_documents_that_sources_cite_exist() -> None:
    cited = re.compile(r"\bdocs/[\w/.-]+\.md\b")
    missing = [
        f"{file.relative_to(ROOT)}: {path}"
        for file in tracked()
        if file.suffix in {".py", ".lua", ".sql", ".ts", ".tsx", ".yaml", ".yml", ".toml"}
        for path in cited.findall(file.read_text())
        if not (ROOT / path).exists()
    ]
    assert missing == []


@every_document
def test_commands_exist(document: Path) -> None:
    missing = []
    for command, argument in COMMAND.findall(code_of(document)):
        word = argument.strip().strip("'\"`")
        if command in VERBS:
            known = word in VERBS[command] or not re.fullmatch(r"[a-z][\w-]*", word)
        else:
            module = ROOT / command.removeprefix("python -m ").replace(".", "/")
            ours = command.startswith(OURS)
            known = (
                not ours or module.with_suffix(".py").exists() or (module / "__main__.py").exists()
            )
        if not known:
            missing.append(f"{command}{argument}")
    assert missing == []


def test_readme_takes_two_screens() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 100


def test_every_number_of_the_readme_has_its_command() -> None:
    """A paragraph or a table with a measured figure names the command that printed it."""
    text = re.sub(
        r"^```.*?^```", "", (ROOT / "README.md").read_text(), flags=re.MULTILINE | re.DOTALL
    )
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    measured = re.compile(r"\d[\d,.]* ?(?:x|s|ms|%|requests/s|likes/s|orders/s)\b")
    unnamed = [
        section.splitlines()[0]
        for section in sections
        if measured.search(section) and not re.search(r"`(?:make|python -m) ?[\w. -]+`", section)
    ]
    assert unnamed == []


def test_no_document_is_outside_of_the_index() -> None:
    """Every page of docs/ can be reached from README by links."""
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        for link in LINK.findall(page.read_text()):
            path = link.partition("#")[0]
            if path.endswith(".md"):
                todo.append((page.parent / path).resolve())
    pages = {file for file in tracked() if file.is_relative_to(ROOT / "docs")}
    pages = {page for page in pages if page.suffix == ".md"}
    assert sorted(str(page.relative_to(ROOT)) for page in pages - reached) == []


def test_each_guide_is_run_by_a_test() -> None:
    guides = {file.name for file in (ROOT / "docs" / "guides").glob("*.md")} - {"README.md"}
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    assert {guide for guide in guides if f'{guide}"' not in tests} == set()


def test_each_number_is_that_of_a_decision_of_the_index_or_explained() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    decisions = [file.name for file in (ROOT / "docs" / "decisions").glob("0*.md")]
    assert sorted(re.findall(r"^\* \[\d{4}\]\((.+)\)", index, re.MULTILINE)) == sorted(decisions)
    unused = re.findall(r"\d{4}", re.findall(r"Numbers that no decision has: (.+?)\.", index)[0])
    numbers = sorted([*unused, *(name[:4] for name in decisions)])
    assert numbers == [f"{n + 1:04}" for n in range(len(numbers))]


# ---------------------------------------------------------------- the picture of the wings


def reduce_transitively(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the arrows that do not follow from others."""

    def reaches(start: str, end: str) -> bool:
        return any(a == start and (b == end or reaches(b, end)) for a, b in arrows)

    return {
        (above, below)
        for above, below in arrows
        if not any(a == above and b != below and reaches(b, below) for a, b in arrows)
    }


def test_the_picture_of_the_wings_has_the_allowed_arrows() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = page.partition('subgraph layer["')[2].partition("    end\n")[0]
    drawn = set(re.findall(r"^ +(\w+) --> (\w+)", picture, re.MULTILINE))
    allowed = {(wing, below) for wing, known in MAY_KNOW.items() for below in {*known, "infra"}}
    assert drawn == reduce_transitively(allowed)


FEATURES = {
    "reactions": "like_post like_comment like_review collect_post collect_comment collect_review"
    " set_reaction list_post_likers list_my_likes list_my_collects get_totals",
    "follows, feed": "follow_user list_followers list_following list_feed_posts",
    "content": "create_post create_comment create_review",
    "moderation": "block_user create_report hide_post show_post hide_comment hide_review",
    "rankings": "list_recommended_reviews list_ranked_posts",
    "flash sales": "create_voucher place_order get_order cancel_order join_waitlist redeem_code",
    "shops, check-ins": "get_shop list_nearby_shops appoint_member create_check_in get_check_ins",
    "notifications": "get_my_unread list_my_notifications create_push_subscription",
    "other systems": "create_server_key list_events",
    "sign-in": "send_code create_session create_passkey list_my_sessions get_my_export"
    " delete_my_account get_health",
    "operations": "start_reconciliation list_reconciliations list_dead_letters",
}
"""Row of README's table of features -> the operations that it promises."""


def test_the_features_of_the_readme_are_operations_of_the_contract() -> None:
    table = (ROOT / "README.md").read_text().partition("| | what an app does with it |")[2]
    rows = re.findall(r"^\| ([a-z ,-]+) \|", table.partition("## ")[0], re.MULTILINE)
    assert rows == list(FEATURES)
    contract = json.loads(CONTRACT.read_text())
    operations = {o["operationId"] for path in contract["paths"].values() for o in path.values()}
    assert {name for names in FEATURES.values() for name in names.split()} <= operations


def test_powertools_md_counts_the_functions() -> None:
    [stated] = re.findall(r"all (\d+) functions", (ROOT / "docs" / "powertools.md").read_text())
    kinds = ("api", "ops", "queue", "schedule")
    handlers = [file for kind in kinds for file in (ROOT / "functions" / kind).glob("*/app.py")]
    assert int(stated) == len(handlers)
