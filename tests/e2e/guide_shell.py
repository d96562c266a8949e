"""The shell of a reader who follows a guide: its files and commands, unchanged but for the port and
the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from cli.paths import ROOT
from local.stack.ports import free_port
from local.stack.stack import Stack

SEPARATOR = "\x1e"
MAX_COMMAND_S = 120


class Block(NamedTuple):
    """A fenced block of the guide: its language, '' for commands, and its text."""

    kind: str
    text: str


def read_sections(guide: Path) -> dict[int, list[Block]]:
    """Return the blocks of each numbered section of a guide; 0 is before the first."""
    parts = re.split(r"^## (?:(\d+)\.|What ).*$", guide.read_text(), flags=re.MULTILINE)
    numbers = [0, *(int(number) for number in parts[1::2] if number)]
    texts = parts[::2][: len(numbers)]
    fenced = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return {
        number: [Block(*block) for block in fenced.findall(text)]
        for number, text in zip(numbers, texts, strict=True)
    }


def count_lines(sections: Mapping[int, Sequence[Block]]) -> tuple[int, int, int]:
    """Return numbers of a guide's files, of lines of code without empty ones, and of commands."""
    blocks = [block for section in sections.values() for block in section]
    files = [block.text for block in blocks if block.kind == "py"]
    lines = sum(len([line for line in text.splitlines()[1:] if line]) for text in files)
    commands = [line for block in blocks if not block.kind for line in block.text.splitlines()]
    continued = sum(line.endswith("\\") for line in commands)
    return len(files), lines, len(commands) - continued


class Shell:
    """The shell of a reader: writes the files of the guide into its directory, runs commands."""

    def __init__(
        self, stack: Stack, directory: Path, sections: Mapping[int, Sequence[Block]]
    ) -> None:
        self.port = free_port()
        self.seconds = 0.0
        self._stack, self._directory, self._sections = stack, directory, sections
        self._errors = (directory.parent / "errors.log").open("w+")
        fresh = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}
        self._bash = subprocess.Popen(
            ["bash", "-euo", "pipefail"],
            cwd=ROOT,
            env={**fresh, "HOME": str(directory.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def follow(self, *sections: int) -> list[str]:
        """Write the files and run the commands of sections; return the output of each block of
        commands."""
        outputs = []
        for block in (block for number in sections for block in self._sections[number]):
            if block.kind == "py":
                name = block.text.partition("\n")[0].removeprefix("# ")
                (self._directory / name).write_text(block.text)
            elif not block.kind:
                began_s = time.monotonic()
                outputs.append(self.run(self._adapt(block.text)))
                self.seconds += time.monotonic() - began_s
        return outputs

    def run(self, commands: str) -> str:
        """Run commands, and return their output."""
        assert self._bash.stdin
        assert self._bash.stdout
        self._bash.stdin.write(f"{commands}\nprintf '{SEPARATOR}\\n'\n")
        self._bash.stdin.flush()
        lines: list[str] = []
        timer = threading.Timer(MAX_COMMAND_S, self._bash.kill)
        timer.start()
        try:
            for line in self._bash.stdout:
                if line.endswith(f"{SEPARATOR}\n"):
                    return "".join([*lines, line.removesuffix(f"{SEPARATOR}\n")])
                lines.append(line)
        finally:
            timer.cancel()
        raise AssertionError(f"{commands}\n{''.join(lines)}{self.read_errors()}")

    def read_errors(self) -> str:
        """Return what commands wrote to standard error."""
        self._errors.flush()
        return (self._directory.parent / "errors.log").read_text()

    def close(self) -> None:
        """End the app, if it runs, and the shell."""
        if self._bash.poll() is None:
            self._bash.communicate("kill $! 2> /dev/null || true\n", timeout=30)
        self._errors.close()

    def _adapt(self, text: str) -> str:
        # Without a package index: what the guide installs is in the environment of the tests.
        packages = f"{sysconfig.get_path('purelib')}\n{ROOT}/clients/python/src"
        text = re.sub(
            r"^pip install .*$",
            f"printf '{packages}' > \"$(echo .venv/lib/python3*/site-packages)/installed.pth\"",
            text,
            flags=re.MULTILINE,
        )
        text = text.replace("python3 -m venv", f"{quote(sys.executable)} -m venv")
        text = text.replace('-m "$@"', f'-m "$1" --dir {self._stack.directory} "${{@:2}}"')
        text = text.replace('"$PLAZA/.venv/bin/python"', quote(sys.executable))
        text = re.sub(r"^uvicorn ", "python -m uvicorn ", text, flags=re.MULTILINE)
        text = text.replace("8000", str(self.port))
        text = re.sub(r" &$", " > app.log 2>&1 &", text, flags=re.MULTILINE)
        # Other tests of this stack have webhooks that fail, which is status 1.
        return re.sub(r"(webhooks list)$", r"\1 || true", text, flags=re.MULTILINE)
