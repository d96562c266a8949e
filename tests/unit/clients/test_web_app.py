"""The web app without a browser: its built files, their size, and its types."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.node import APP, MODULES, needs_npm_packages, run_node


def test_its_first_page_has_at_most_60_kb() -> None:
    printed = run_node("scripts/size.ts", cwd=APP)
    assert re.search(r"^plaza-app: \d+ bytes gzipped, of at most 61440$", printed, re.MULTILINE)


def test_its_page_loads_nothing_from_elsewhere() -> None:
    page = (APP / "dist" / "index.html").read_text()
    assert "default-src 'self'" in page
    assert set(re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page)) == {"./app.js", "./app.css"}


@needs_npm_packages
def test_the_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    vite = MODULES / "vite" / "bin" / "vite.js"
    run_node(vite, "build", "--outDir", tmp_path, "--logLevel", "error", cwd=APP)
    built = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in (APP / "dist").iterdir()}
    assert built == kept, "`make web` builds them"


@needs_npm_packages
def test_it_is_typed_strictly() -> None:
    run_node(MODULES / "typescript" / "bin" / "tsc", "--project", ".", cwd=APP)
