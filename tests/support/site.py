"""The documentation site, built without the scripts that come from a registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.paths import TOOLS
from tools.site import build

needs_zensical = pytest.mark.skipif(
    not (TOOLS / "zensical").exists(), reason="NOT TESTED: `make setup` installs zensical"
)


def build_site(directory: Path) -> Path:
    """Build the site in a directory, and return the folder of its pages."""
    build.write_pages(directory)
    build.build(directory)
    return directory / "html"
