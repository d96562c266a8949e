"""The server programs of a stack: found, installed with root rights, or named in an error.

Tests of the web app also use a browser, `make test-clock` a compiler. They are installed in the
same way, and can be missing.
"""

import os
import shutil
import subprocess

from cli.paths import CommandError
from local.stack.servers import find_binary

DEBIAN = {
    "redis-server": "redis-server",
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "resolveip": "mariadb-client-core",  # mariadb-install-db calls it
}

BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Debian starts a server when its package is installed, unless a policy forbids it.
INSTALL = """
set -eu
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > $policy
  chmod +x $policy
fi
get() { apt-get install -y -qq --no-install-recommends "$@"; }
get "$@" || { apt-get update -qq && get "$@"; }
"""


def missing_packages() -> list[str]:
    needed = dict(DEBIAN)
    if os.environ.get("PLAZA_REDIS_URL"):
        del needed["redis-server"]
    if os.environ.get("PLAZA_MYSQL_URL"):
        needed = {name: package for name, package in needed.items() if "mariadb" not in package}
    return sorted({package for name, package in needed.items() if find_binary(name) is None})


def check_servers() -> None:
    """Raise CommandError with install instructions unless every server program is found."""
    if missing := missing_packages():
        raise CommandError(explain(missing))


def install_packages() -> list[str]:
    """Install missing packages where root is available. Returns them. Raises CommandError."""
    missing = missing_packages()
    if not missing:
        return []
    printed = _install(missing)
    if printed is None:
        raise CommandError(explain(missing))
    if missing_packages():
        tail = "\n".join(printed.strip().splitlines()[-10:])
        raise CommandError(f"{explain(missing)}\n\napt-get printed:\n{tail}")
    return missing


def find_browser() -> str | None:
    """Return the path of a Chromium."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def install_browser() -> bool:
    """Install Chromium if there is none, where root is available. Returns whether there is one."""
    if find_browser() is None:
        _install(["chromium"])
    return find_browser() is not None


def install_compiler() -> bool:
    """Install a compiler of C if there is none, where root is available. Returns whether there is
    one."""
    if shutil.which("cc") is None:
        _install(["gcc", "libc6-dev"])
    return shutil.which("cc") is not None


def _install(packages: list[str]) -> str | None:
    """Install packages of Debian. Returns what was printed; None without root or apt-get."""
    as_root = _as_root()
    if as_root is None or shutil.which("apt-get") is None:
        return None
    command = [*as_root, "sh", "-c", INSTALL, "sh", *packages]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    return completed.stdout + completed.stderr


def explain(missing: list[str]) -> str:
    return (
        "these programs are missing; install them and try again:\n"
        f"  Debian, Ubuntu  sudo apt-get install --no-install-recommends {' '.join(missing)}\n"
        "  macOS           brew install redis mariadb\n"
        "or set PLAZA_REDIS_URL and PLAZA_MYSQL_URL (mysql://user:password@host:port/db) "
        "to servers of your own"
    )


def _as_root() -> list[str] | None:
    """Return the command prefix to run as root without a prompt; None without root."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None or subprocess.run([sudo, "-n", "true"], capture_output=True).returncode != 0:
        return None
    return [sudo, "-n"]
