"""The web pages without a browser: their built files, their size, and their types."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.paths import ROOT
from tests.support.node import MODULES, WEB, needs_npm_packages, run_node

CONTRACT = ROOT / "functions" / "api" / "system" / "openapi.json"
PAGES = pytest.mark.parametrize("name", ["app", "console"])


@PAGES
def test_a_first_page_has_at_most_60_kb(name: str) -> None:
    printed = run_node(WEB / "shared" / "size.ts", name)
    line = rf"^plaza-{name}: \d+ bytes gzipped, of at most 61440$"
    assert re.search(line, printed, re.MULTILINE)


@PAGES
def test_a_page_loads_nothing_from_elsewhere(name: str) -> None:
    page = (WEB / name / "dist" / "index.html").read_text()
    assert "default-src 'self'" in page
    loaded = set(re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page))
    assert loaded == {f"./{name}.js", f"./{name}.css"}


@PAGES
@needs_npm_packages
def test_the_built_files_are_those_of_the_sources(name: str, tmp_path: Path) -> None:
    vite = MODULES / "vite" / "bin" / "vite.js"
    run_node(vite, "build", "--outDir", tmp_path, "--logLevel", "error", cwd=WEB / name)
    built = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in (WEB / name / "dist").iterdir()}
    assert built == kept, "`make web` builds them"


@needs_npm_packages
def test_no_component_has_a_text_of_its_own(tmp_path: Path) -> None:
    """Nor a format of a number or a date: catalogues have the texts, language.ts the formats."""
    sources = [WEB / name / "src" for name in ("app", "console")]
    run_node(WEB / "shared" / "find-strings.ts", WEB / "shared", *sources)
    pages = [
        "<p>Hello</p>",
        '<p title="Show more" />',
        '<Field label="Title" />',
        "<p>{isOn ? 'Stop' : other}</p>",
        "<p>{`Order ${id}`}</p>",
        "<p>评论</p>",
        "<p>{say('It is saved')}</p>",
        "<p>{new Intl.NumberFormat('en').format(3)}</p>",
        "<p>{at.toLocaleDateString()}</p>",
    ]
    for number, written in enumerate(pages):
        (tmp_path / f"{number}.tsx").write_text(f"export const page = () => {written};\n")
    with pytest.raises(AssertionError) as refused:
        run_node(WEB / "shared" / "find-strings.ts", tmp_path)
    numbers = re.findall(r"(\d+)\.tsx:1: ", str(refused.value))
    assert {*map(int, numbers)} == {*range(len(pages))}


@pytest.mark.parametrize("language", ["ru", "zh"])
def test_the_console_has_a_word_for_each_state_that_operators_read(language: str) -> None:
    """The words are in the contract, as values of enumerations and names of switches."""
    schemas = json.loads(CONTRACT.read_text())["components"]["schemas"]
    words = {*schemas["SwitchSet"]["properties"], "moderator", "sales", "operator", "admin"}
    for schema, field in (
        ("AuditedTargetResponse", "state"),
        ("ErasureResponse", "state"),
        ("HealthResponse", "redis"),
        ("OpenReport", "reason"),
        ("SaleResponse", "kind"),
        ("ScheduleResponse", "outcome"),
    ):
        words.update(schemas[schema]["properties"][field]["enum"])
    catalogue = (WEB / "console" / "src" / "texts" / f"{language}.ts").read_text()
    [written] = re.findall(r"^  words: \{\n(.*?)^  \},$", catalogue, re.MULTILINE | re.DOTALL)
    assert words - set(re.findall(r'^    "?([\w-]+)"?: ', written, re.MULTILINE)) == set()


def test_styles_have_no_left_and_no_right() -> None:
    """A page in a language that is written from right to left is mirrored by logical properties."""
    sides = re.compile(
        r"^\s*(?:(?:margin|padding|border)-(?:left|right)\b.*|(?:left|right):.*"
        r"|(?:text-align|float): (?:left|right);"
        r"|(?:margin|padding|inset): \S+ (\S+) \S+ (?!\1;)\S+;)$",
        re.MULTILINE,
    )
    for sheet in (*WEB.glob("*/src/style.css"), WEB / "shared" / "style.css"):
        assert [match[0].strip() for match in sides.finditer(sheet.read_text())] == [], sheet


@pytest.mark.deep
@needs_npm_packages
def test_the_pages_are_typed_strictly() -> None:
    run_node(MODULES / "typescript" / "bin" / "tsc", "--project", WEB)
