"""``python -m tools release [TAG]``: print the notes of this version, from CHANGELOG.md.

Exits 1 when the files that name the version disagree, or when TAG is not ``v`` and the version.
"""

import argparse
import json
import re
import tomllib

from cli.paths import CONTRACT, ROOT, CommandError

CHANGELOG = ROOT / "CHANGELOG.md"
PACKAGES = ("clients/typescript", "web/app", "web/console")
PYTHON_CLIENT = "clients/python/src/plaza_client/version.py"
_SECTION = re.compile(r"^## \[([^\]]+)\](?: - (\d{4}-\d\d-\d\d))?\n(.*?)(?=^## |\Z)", re.M | re.S)


def read_version() -> str:
    """Return the version in pyproject.toml."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def read_versions() -> dict[str, str]:
    """Return the version that each file names. The changelog's is its newest release."""
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    versions = {
        "pyproject.toml": read_version(),
        "CHANGELOG.md": next(iter(read_releases(CHANGELOG.read_text()))),
        "openapi.json": json.loads(CONTRACT.read_text())["info"]["version"],
        PYTHON_CLIENT: (ROOT / PYTHON_CLIENT).read_text().rpartition(" = ")[2].strip('"\n'),
    }
    for package in PACKAGES:
        declared = json.loads((ROOT / package / "package.json").read_text())
        for name, declared_package in (
            ("package.json", declared),
            ("package-lock.json", locked[package]),
        ):
            versions[f"{package} in {name}"] = declared_package["version"]
            if client := declared_package.get("dependencies", {}).get("plaza-client"):
                versions[f"plaza-client of {package} in {name}"] = client
    return versions


def read_releases(changelog: str) -> dict[str, str]:
    """Return the notes of each dated release by its version, the newest first."""
    return {version: notes.strip() for version, date, notes in _SECTION.findall(changelog) if date}


def find_disagreements(versions: dict[str, str], tag: str | None = None) -> list[str]:
    """Return which files, or the tag, name another version than pyproject.toml does."""
    version = versions["pyproject.toml"]
    differing = [f"{name} has {named}" for name, named in versions.items() if named != version]
    if tag is not None and tag != f"v{version}":
        differing.append(f"the tag is {tag}")
    return [f"pyproject.toml has {version}, {difference}" for difference in differing]


def main(args: argparse.Namespace) -> int:
    """Print the notes. Raises CommandError for files, or a tag, of another version."""
    if disagreements := find_disagreements(read_versions(), args.tag):
        raise CommandError("; ".join(disagreements))
    print(read_releases(CHANGELOG.read_text())[read_version()])
    return 0
