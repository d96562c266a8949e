"""Tests and their child processes see nothing of the AWS account, language, time zone and umask of
the developer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from cli.paths import LAYER, ROOT

SHELL = {
    "AWS_ENDPOINT_URL": "https://example.com",
    "AWS_PROFILE": "unknown",
    "AWS_REGION": "ap-south-1",
    "LANG": "de_DE.UTF-8",
    "LANGUAGE": "de",
    "LC_ALL": "C",
    "TZ": "Asia/Tokyo",
}
PRINTED = """
import json, os, time
from tests.support import base_environment
umask = os.umask(0)
print(json.dumps([dict(os.environ), time.tzname[0], umask]))
"""


def test_settings_of_the_shell_do_not_reach_tests() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", PRINTED],
        cwd=ROOT,
        env=os.environ | SHELL,
        umask=0o077,
        check=True,
        capture_output=True,
        text=True,
    )
    environment, zone, umask = json.loads(completed.stdout)
    names = {name for name in environment if name.startswith(("AWS_", "LC_", "LANG"))}
    assert names - {"LC_CTYPE"} == {  # which Python sets itself
        "AWS_CONFIG_FILE", "AWS_EC2_METADATA_DISABLED", "AWS_SHARED_CREDENTIALS_FILE", "LANG",
    }  # fmt: skip
    assert environment["LANG"] == "C.UTF-8"
    assert environment["PYTHONPATH"] == f"{ROOT}{os.pathsep}{LAYER}"
    assert (environment["TZ"], zone, umask) == ("UTC", "UTC", 0o022)
