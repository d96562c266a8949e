"""The site answers what newcomers ask: the first result of its own search has the answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.paths import CommandError
from tests.support.site import build_site, needs_zensical
from tools.node import find_node
from tools.site.pages import LINK
from tools.site.search import extend_search

pytestmark = needs_zensical
ASK = Path(__file__).parent / "ask_site.mjs"
Ask = Callable[[str], list[str]]

QUESTIONS = {
    "Do I need Docker?": "troubleshooting.html#do-i-need-docker-docker-compose-or-an-aws-account",
    "How do I build a feed page?": "guides/feed-page.html",
    "How do I add a like button?": "guides/like-button.html",
    "Can I upload images?": "when-to-use.html#can-it-upload-images-videos-or-files",
    "What does it cost?": "when-to-use.html#cost-and-pricing-what-does-it-cost",
    "How do I import my likes table?": "guides/import-likes.html",
    "How do I sign in the users of my own app?": (
        "troubleshooting.html#sign-in-with-the-users-of-my-own-app-sso-openid-connect"
    ),
    "Why do I get 429?": "troubleshooting.html#429-too-many-requests",
    "How does it compare with Supabase?": "when-to-use.html#compared-with-supabase",
    "Are there webhooks?": "api.html#webhooks",
}
"""Ten questions of a newcomer, and the section that answers each."""

WORDS = {
    "docker compose": "troubleshooting.html",
    "macOS": "troubleshooting.html",
    "troubleshooting": "troubleshooting.html",
    "license": "when-to-use.html",
    "notifications": "notifications.html",
    "upload image": "when-to-use.html",
    "websocket": "when-to-use.html",
    "upgrade": "upgrading.html",
    "pagination": "api.html",
    "CORS": "troubleshooting.html",
}
"""What newcomers type, and the page that answers."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the site: sources and pages."""
    directory = tmp_path_factory.mktemp("site")
    build_site(directory)
    return directory


@pytest.fixture(scope="module")
def ask(site: Path) -> Ask:
    """``ask(question)`` returns the locations of the results, best first."""
    try:
        node = find_node()
    except CommandError as error:
        pytest.skip(f"NOT TESTED: {error}")
    questions = [*QUESTIONS, *WORDS, "idempotency", "redis", "the"]
    completed = subprocess.run(
        [node, ASK, site / "html", *questions], capture_output=True, text=True, timeout=60
    )
    assert completed.returncode == 0, completed.stderr
    results: dict[str, list[str]] = json.loads(completed.stdout)
    return results.__getitem__


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_of_a_newcomer_is_answered_in_one_step(question: str, ask: Ask) -> None:
    assert ask(question)[:1] == [QUESTIONS[question]]


@pytest.mark.parametrize("words", WORDS)
def test_what_newcomers_type_leads_to_the_page_that_answers(words: str, ask: Ask) -> None:
    assert ask(words)[0].partition("#")[0] == WORDS[words]


@pytest.mark.parametrize("words", ["idempotency", "redis"])
def test_decisions_rank_below_all_other_pages(words: str, ask: Ask) -> None:
    are_last = [location.startswith(("decisions/", "changelog")) for location in ask(words)]
    assert are_last == sorted(are_last)
    assert not are_last[0]


def test_a_question_of_small_words_only_is_searched_as_it_is(ask: Ask) -> None:
    assert ask("the")


def test_an_unknown_script_of_the_search_is_reported(site: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no script"):
        extend_search(tmp_path)
    shutil.copytree(site / "html" / "assets" / "javascripts", tmp_path / "assets" / "javascripts")
    [script] = (tmp_path / "assets" / "javascripts" / "workers").iterdir()
    script.write_text("self.onmessage = () => {};")
    with pytest.raises(CommandError, match="does not know"):
        extend_search(tmp_path)


def test_each_page_has_its_markdown_beside_it(site: Path) -> None:
    html = site / "html"
    twin = (html / "guides" / "feed-page.md").read_text()
    assert twin.startswith("# Tutorial")
    assert "](../live-numbers.md)" in twin
    page = (html / "guides" / "feed-page.html").read_text()
    assert '<link rel="alternate" type="text/markdown" href="feed-page.md">' in page
    assert (html / "guides" / "README.md").exists()


def test_the_list_for_programs_names_pages_that_exist(site: Path) -> None:
    text = (site / "html" / "llms.txt").read_text()
    links = LINK.findall(text)
    assert text.startswith("# Plaza\n\n> ")
    assert len(links) > 30
    assert [link for _, link, _ in links if not (site / "html" / link).is_file()] == []
    assert all(len(line) > 40 for line in text.splitlines() if line.startswith("- "))


def test_the_glossary_of_the_site_has_no_retired_words(site: Path) -> None:
    page = (site / "pages" / "glossary.md").read_text()
    assert "| term | meaning |\n|---|---|\n" in page
    assert "settle" not in page
