"""A file that changes its process fails, by name and with the difference; all others pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.paths import ROOT

# Name of a file -> what its test does, what the guard prints.
CHANGES = {
    "added": ("os.environ['AWS_REGION'] = 'eu-west-1'", "environment AWS_REGION: None -> 'eu-w"),
    "removed": ("del os.environ['GIVEN']", "environment GIVEN: 'before' -> None"),
    "directory": ("os.chdir('/')", "working directory: "),
    "umask": ("os.umask(0o077)", "umask: '0o22' -> '0o77'"),
    "locale": ("locale.setlocale(locale.LC_NUMERIC, 'C.UTF-8')", "locale: 'LC_CTYPE="),
    "zone": (
        "os.environ['TZ'] = 'JST-9'; time.tzset(); os.environ['TZ'] = 'UTC'",
        "time zone: ('UTC', 'UTC') -> ('JST', 'JST')",
    ),
    "path": ("sys.path.insert(0, '/nowhere')", "sys.path: ("),
    "interval": ("sys.setswitchinterval(0.001)", "switch interval: 0.005 -> 0.001"),
    "signals": (
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "signal 10: <Handlers.SIG_DFL: 0>",
    ),
    "disabled": ("logging.disable(logging.INFO)", "disabled log level: 0 -> 20"),
    "level": ("LOGGER.setLevel(logging.ERROR)", "logger of.tests: (0, True, "),
    "handler": ("logging.getLogger().addHandler(logging.StreamHandler())", "logger root: (30, "),
    "answer": (
        "LOGGER.level = 50; LOGGER.isEnabledFor(40); LOGGER.level = 0",
        "logger of.tests: (0, True, False, (), (), ()) -> (0, True, False, (), (), (40,))",
    ),
    "settings": (
        "change_settings()",
        "cache plaza.commerce.changes.settings.change_settings: 0 -> 1 values",
    ),
    "cache": (
        "queries._shops.put(7, True)",
        "cache plaza.social.content.queries._shops: 0 -> 1 values",
    ),
    "value": (
        "breaker_reports._process.get()",
        "cache plaza.infra.redis.breaker_reports._process: 0 -> 1 values",
    ),
    "breaker": ("sqs.SQS.breaker.open()", "cache plaza.infra.queues.sqs.SQS: 0 -> 1 values"),
    "clock": ("clock.now_us = lambda: 0", "clock now_us: <function now_us"),
    "module_fixture": ("request.getfixturevalue('of_module')", "environment MODULE: None -> 'on'"),
    "session_fixture": ("request.getfixturevalue('of_run')", "environment RUN: None -> 'on'"),
}
RESTORED = {
    "patched": "monkeypatch.setenv('AWS_REGION', 'eu-west-1'); monkeypatch.chdir('/')",
    "emptied": "queries._shops.put(7, True); reset_process()",
    "module_end": "request.getfixturevalue('until_the_end_of_the_file')",
    "unchanged": "pass",
}
HEAD = """
import locale, logging, os, signal, sys, time
import pytest
from plaza.commerce.changes.settings import change_settings
from plaza.social.content import queries
from plaza.infra.queues import sqs
from plaza.infra.redis import breaker_reports
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import reset_process

LOGGER = logging.getLogger("of.tests")

@pytest.fixture(scope="module")
def of_module():
    os.environ["MODULE"] = "on"

@pytest.fixture(scope="module")
def until_the_end_of_the_file():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNTIL", "the end")
        yield

def test_first(monkeypatch, request):
    {}

def test_last():
    pass
"""
CONFTEST = """
import os
import pytest

@pytest.fixture(scope="session")
def of_run():
    os.environ["RUN"] = "on"
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of one run of all files, each after the changes of those before it."""
    folder: Path = tmp_path_factory.mktemp("guarded")
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    bodies = {name: body for name, (body, _) in CHANGES.items()} | RESTORED
    for name, body in bodies.items():
        (folder / f"test_{name}.py").write_text(HEAD.format(body))
    plugins = ("tests.support.base_environment", "tests.support.process_guard")
    options = [option for plugin in plugins for option in ("-p", plugin)]
    completed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rN",
            "-p",
            "no:cacheprovider",
            *options,
            str(folder),
        ],
        cwd=ROOT,
        env=os.environ | {"GIVEN": "before", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert f"{2 * len(bodies)} passed, {len(CHANGES)} errors" in completed.stdout
    return completed.stdout


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changes_its_process_fails(printed: str, name: str) -> None:
    [[first, *_]] = reports = [
        report.split("\n")
        for report in printed.split(f"test_{name}.py changed its process for the files after it:\n")
    ][1:]
    assert len(reports) == 1
    assert CHANGES[name][1] in first


@pytest.mark.parametrize("name", RESTORED)
def test_a_file_that_restores_its_process_passes(printed: str, name: str) -> None:
    assert f"test_{name}.py" not in printed
