"""The server programs a stack needs: found, installed when we may, else named exactly."""

import os
import shutil
import subprocess

from local.paths import LocalError
from local.stack.servers import find_binary

DEBIAN = {
    "redis-server": "redis-server",
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "resolveip": "mariadb-client-core",  # mariadb-install-db calls it
}

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
    """The Debian packages of the servers that are not here. The user's own are not needed."""
    needed = dict(DEBIAN)
    if os.environ.get("PLAZA_REDIS_URL"):
        del needed["redis-server"]
    if os.environ.get("PLAZA_MYSQL_URL"):
        needed = {name: package for name, package in needed.items() if "mariadb" not in package}
    return sorted({package for name, package in needed.items() if find_binary(name) is None})


def check_servers() -> None:
    """Raises LocalError that says what to install, unless every server program is here."""
    if missing := missing_packages():
        raise LocalError(explain(missing))


def install_packages() -> list[str]:
    """Install what is missing, where we may; what was installed. Raises LocalError otherwise."""
    missing = missing_packages()
    if not missing:
        return []
    as_root = _as_root()
    if as_root is None or shutil.which("apt-get") is None:
        raise LocalError(explain(missing))
    command = [*as_root, "sh", "-c", INSTALL, "sh", *missing]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or missing_packages():
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise LocalError(f"{explain(missing)}\n\napt-get said:\n{tail}")
    return missing


def explain(missing: list[str]) -> str:
    """What a person does about missing packages."""
    return (
        "these programs are missing; install them and try again:\n"
        f"  Debian, Ubuntu  sudo apt-get install --no-install-recommends {' '.join(missing)}\n"
        "  macOS           brew install redis mariadb\n"
        "or set PLAZA_REDIS_URL and PLAZA_MYSQL_URL (mysql://user:password@host:port/db) "
        "to servers of your own"
    )


def _as_root() -> list[str] | None:
    """How to run something as root without a question; None when we may not."""
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None or subprocess.run([sudo, "-n", "true"], capture_output=True).returncode != 0:
        return None
    return [sudo, "-n"]
