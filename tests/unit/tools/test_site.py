"""The sources of the documentation site: every page is a page of it, and links stay within it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from cli.paths import CONTRACT, ROOT, CommandError
from tools.site import pages as site
from tools.site import reference
from tools.site.build import CONFIGURATION, lighten
from tools.site.scripts import SCRIPTS


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All sources of the site."""
    pages = tmp_path_factory.mktemp("pages")
    site.copy_pages(pages)
    reference.write_reference(pages)
    return pages


def test_every_document_is_a_page(pages: Path) -> None:
    documents = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    assert documents <= {str(file.relative_to(pages)) for file in pages.rglob("*.md")}


def test_every_link_leads_to_a_file_of_the_site(pages: Path) -> None:
    broken = [
        f"{page.relative_to(pages)}: {link}"
        for page in pages.rglob("*.md")
        for link in re.findall(r"\]\(([^)\s#]+)", site.CODE.sub("", page.read_text()))
        if not re.match(r"[a-z]+:", link) and not (page.parent / link).is_file()
    ]
    assert broken == []


def test_the_navigation_has_every_page_of_docs_once(pages: Path) -> None:
    text = site.expand_navigation(CONFIGURATION.read_text(), pages)
    tomllib.loads(text)
    named = re.findall(r'"([\w./-]+\.md)"', text)
    ours = {
        str(p.relative_to(pages))
        for p in pages.rglob("*.md")
        if "files" not in p.relative_to(pages).parts
    }
    assert sorted(named) == sorted(ours)


def test_a_page_is_shown_before_its_scripts_run_and_keeps_the_colors_of_code() -> None:
    page = (
        '<script src="./bundle.js"></script><script>let x</script>'
        '<pre><span class="p">{</span><span class="nt">"a"</span><span class="w"> </span></pre>'
    )
    assert lighten(page) == (
        '<script defer src="./bundle.js"></script><script>let x</script>'
        '<pre>{<span class="nt">"a"</span> </pre>'
    )


def test_the_type_of_a_problem_leads_to_a_section(pages: Path) -> None:
    page = (pages / "problems.md").read_text()
    assert "\n## sold-out\n\n**Sold out**, status 409. The voucher has no units left." in page
    assert len(re.findall(r"^## [a-z-]+$", page, re.MULTILINE)) > 25
    assert "| slug |" not in page


def test_a_link_out_of_docs_becomes_a_link_to_a_copy(pages: Path) -> None:
    runbooks = (pages / "runbooks" / "README.md").read_text()
    assert "(../files/alarms.yaml.txt)" in runbooks
    assert (pages / "files" / "alarms.yaml.txt").read_text() == (ROOT / "alarms.yaml").read_text()
    assert "(operations.md)" in (pages / "index.md").read_text()


def test_a_link_in_code_is_left_alone(tmp_path: Path) -> None:
    text = "`[a](missing.md)`\n```\n[b](missing.md)\n```\n[c](https://example.com) [d](#here)"
    assert list(site.find_links(ROOT / "README.md", text)) == []


@pytest.mark.parametrize("link", ["missing.md", "docs/missing", "../outside.md"])
def test_a_broken_link_is_reported(link: str) -> None:
    with pytest.raises(CommandError, match=r"README\.md links to"):
        list(site.find_links(ROOT / "README.md", f"[a]({link})"))


def test_the_reference_lists_every_operation_once(pages: Path) -> None:
    contract = json.loads(CONTRACT.read_text())
    ids = [o["operationId"] for item in contract["paths"].values() for o in item.values()]
    links = re.findall(r"\((reference/[\w-]+\.md)#([\w-]+)\)", (pages / "reference.md").read_text())
    assert len(links) == len(set(links)) == len(ids)
    for page, anchor in links:
        headings = re.findall(r"^## (.+)$", (pages / page).read_text(), re.MULTILINE)
        assert anchor in [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]
    text = "".join(page.read_text() for page in (pages / "reference").glob("*.md"))
    assert sorted(re.findall(r"/operation/(\w+)\)", text)) == sorted(ids)


def test_the_page_of_the_reference_contains_the_contract_and_asks_no_other_host(
    pages: Path,
) -> None:
    page = (pages / "redoc.html").read_text()
    assert not re.search(r"(?:src|href)=\"https?:", page)
    [values] = re.findall(r"Redoc\.init\((\{.*\}), \{\.\.\.", page)
    assert json.loads(values) == json.loads(CONTRACT.read_text())


def test_text_of_the_contract_cannot_end_the_script() -> None:
    assert "<" not in reference.to_script({"a": "</script>"})


def test_scripts_have_one_version_and_a_hash() -> None:
    for script in SCRIPTS:
        assert re.fullmatch(r"[a-z-]+@\d+\.\d+\.\d+", script.package)
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", script.integrity)
