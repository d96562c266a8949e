"""The scripts of the site: single files of npm packages, checked by their hashes.

``npm pack`` fetches one archive each. ``npm ci`` would install the hundreds of packages that these
bundles were built from.
"""

import json
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from cli.paths import CommandError
from tools.node import node_environment, npm_command


@dataclass(frozen=True, slots=True)
class Script:
    """A file of a package of npm, and the hash of the package's archive."""

    package: str
    integrity: str
    file: str
    name: str


SCRIPTS = (
    Script(
        "mermaid@12.3.0",
        "sha512-4113TdXeLAsMruJ79OpFL5O8+LTFXhQqZ260rF3tgUmiNAtRm4Uume04I+65PRN6yZ69J4f8rVYWW8zRk65UYw==",
        "dist/mermaid.min.js",
        "mermaid.min.js",
    ),
    Script(  # 3.0 is a module, which a page that is opened as a file cannot load
        "redoc@2.5.4",
        "sha512-M6jWhG1qoBnH6TFmzJnstyCZ87HmOY/UzDm78mHiYihEdlV/YcS9ogOo1NlElnJMeLsyxHFe2yFc4sNjHTrABQ==",
        "bundles/redoc.standalone.js",
        "redoc.js",
    ),
    Script(  # the search of pages that are opened as files
        "iframe-worker@1.0.4",
        "sha512-roeaaI+Lg1LJNfgpCjoRe/+WzEjy9+Z08LoEvu85MCPbBjwm+qXz8Ag5U05lHa6V1CysZyGzE0SOkAtSUA5q7Q==",
        "shim/index.js",
        "iframe-worker.js",
    ),
)
"""All of them have the MIT License, which is copied with them."""


def fetch_scripts(directory: Path) -> None:
    """Fetch the scripts and their licenses that ``directory`` lacks. Raises CommandError."""
    for script in SCRIPTS:
        kept = directory / script.package
        if not (kept / script.name).exists():
            _fetch(script, kept)


def _fetch(script: Script, kept: Path) -> None:
    kept.mkdir(parents=True, exist_ok=True)
    command = [*npm_command(), "pack", script.package, "--json", "--pack-destination", str(kept)]
    completed = subprocess.run(command, env=node_environment(), capture_output=True, text=True)
    if completed.returncode:
        raise CommandError(f"npm cannot fetch {script.package}: {completed.stderr.strip()[-500:]}")
    [packed] = json.loads(completed.stdout)
    archive = kept / packed["filename"]
    try:
        if packed["integrity"] != script.integrity:
            raise CommandError(f"{script.package} has another hash than tools/site/scripts.py")
        with tarfile.open(archive) as files:
            for name, file in (("LICENSE", "LICENSE"), (script.name, script.file)):
                if (member := files.extractfile(f"package/{file}")) is None:
                    raise CommandError(f"{script.package} has no file {file}")
                (kept / name).write_bytes(member.read())
    finally:
        archive.unlink()
