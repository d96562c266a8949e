"""The environment that all tests and their child processes start with, whatever the shell has.

A plugin, loaded before all others that import Plaza or start a server: without the AWS settings,
language, time zone and umask of the developer.
"""

import os
import time

from cli.paths import LAYER, ROOT

_OF_THE_SHELL = ("AWS_", "LANG", "LC_")  # LANG also begins LANGUAGE
_PINNED = {
    "AWS_CONFIG_FILE": os.devnull,  # no profile
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",  # its address is not loopback
    "LANG": "C.UTF-8",
    "PYTHONPATH": f"{ROOT}{os.pathsep}{LAYER}",  # processes of tests find what tests find
    "TZ": "UTC",
}

for _name in [name for name in os.environ if name.startswith(_OF_THE_SHELL)]:
    del os.environ[_name]
os.environ.update(_PINNED)
time.tzset()
os.umask(0o022)
