"""The package plaza-client of PyPI: what it has, its metadata, and its types from outside."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from cli.paths import ROOT

PROJECT = ROOT / "clients" / "python"
SOURCES = PROJECT / "src" / "plaza_client"
# httpx, anyio and typing-extensions, with what they need; some only for some versions of Python.
NEEDED = ("anyio", "certifi", "h11", "httpcore", "httpx", "idna", "sniffio", "typing_extensions.py")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the wheel and the archive of the sources, built as for a release."""
    directory = tmp_path_factory.mktemp("dist")
    run("hatchling", "build", "--directory", str(directory), cwd=PROJECT)
    return directory


@pytest.fixture(scope="module")
def outside(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own: the wheel, and the packages that it needs from this one."""
    directory = tmp_path_factory.mktemp("outside")
    venv.create(directory, with_pip=False, symlinks=True)
    [site] = directory.glob("lib/*/site-packages")
    [wheel] = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    installed = Path(pytest.__file__).parents[1]
    for name in NEEDED:
        if (installed / name).exists():
            (site / name).symlink_to(installed / name)
    return directory


def run(module: str, *words: str, cwd: Path = ROOT) -> str:
    completed = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def test_the_package_has_the_modules_their_types_and_examples_and_nothing_else(built: Path) -> None:
    sources = {f"plaza_client/{file.name}" for file in SOURCES.iterdir() if file.is_file()}
    assert {"plaza_client/py.typed", "plaza_client/examples.json"} < sources
    [wheel] = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == sources
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        members = {member.partition("/")[2] for member in packed.getnames()}
    assert members == {f"src/{name}" for name in sources} | {
        ".gitignore",
        "LICENSE",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
    }


def test_the_metadata_is_what_an_index_takes(built: Path) -> None:
    printed = run("twine", "check", "--strict", *map(str, built.iterdir()))
    assert printed.count("PASSED") == 2


def test_it_can_be_installed_from_a_folder(tmp_path: Path) -> None:
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    run("pip", "install", "--quiet", *options, "--target", str(tmp_path), "clients/python")
    assert (tmp_path / "plaza_client" / "py.typed").is_file()


def test_it_runs_outside_with_the_packages_that_it_declares(outside: Path) -> None:
    program = "import plaza_client.testing as t; print(len(t.ExampleTransport()._operations))"
    completed = subprocess.run(
        [outside / "bin" / "python", "-I", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert completed.stderr == ""
    assert int(completed.stdout) > 100


USE = """
from plaza_client import AsyncPlaza, Plaza, models, problems

plaza = Plaza("https://api.example", token="sk_1_secret")
liked: models.LikeResponse = plaza.act_as("my-app|ann").posts.like("12")
total: int | None = liked["likes"]
titles: list[str] = [post["title"] for post in plaza.feed.list_posts(limit=50)]
cursor: str | None = plaza.posts.list_ranked(window="day").first()["next"]
plaza.posts.create({"kind": "note", "title": "Hello", "body": "-"}, idempotency_key="mine")


async def read(client: AsyncPlaza) -> list[str]:
    page = await client.feed.list_posts()
    await client.posts.unlike(page["items"][0]["id"])
    return [post["id"] async for post in client.feed.list_posts()]


try:
    plaza.buy("9")
except problems.SoldOut as error:
    print(error.slug)
"""
MISTAKES = """
from plaza_client import Plaza, problems

plaza = Plaza("https://api.example")
plaza.posts.like("12")["like"]
plaza.posts.like(12)
plaza.posts.create({"kind": "note", "titel": "Hello", "body": "-"})
plaza.posts.list_ranked(window="month")
plaza.posts.like("12", idempotency_key="mine")
plaza.posts.lke("12")
problems.SoldOutt
"""


@pytest.mark.deep
def test_its_types_are_strict_from_outside_and_find_each_mistake(
    outside: Path, tmp_path: Path
) -> None:
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    words = ["--strict", "--no-error-summary", "--hide-error-context", "--python-version", "3.10"]
    words += ["--python-executable", str(outside / "bin" / "python"), "use.py", "mistakes.py"]
    completed = subprocess.run(
        [sys.executable, "-m", "mypy", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    errors = re.findall(r"^(\S+): error: ", completed.stdout, re.MULTILINE)
    expected = [*range(5, len(MISTAKES.splitlines()) + 1)]
    assert [*dict.fromkeys(errors)] == [f"mistakes.py:{n}" for n in expected], completed.stdout
