"""Packages that redis-py imports and no function uses run when something of them is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

DEFERRED = ("redis.asyncio", "importlib.metadata")


def run(code: str) -> str:
    """Run ``code`` in a new process, which fails with it, and return what it prints."""
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.strip()


def test_the_client_of_redis_runs_no_deferred_package() -> None:
    ran = run(
        "import sys; import plaza.infra.redis.redis\n"
        f"print([n for n in {DEFERRED} if sys.modules[n].__spec__ is not None])"
    )
    assert ran == "[]"


@pytest.mark.parametrize(
    "use",
    [
        "from redis.asyncio import Redis as used",
        "import redis.asyncio; used = redis.asyncio.Redis",
        "import redis; used = redis.asyncio.Redis",
        "from redis.asyncio.client import Redis as used",
        "import redis.asyncio; used = redis.asyncio.client.Redis",
        "from importlib.metadata import version as used",
        "import importlib.metadata; used = importlib.metadata.version",
        "import redis.utils; used = redis.utils.metadata.PackageNotFoundError",
    ],
)
def test_a_deferred_package_is_whole_when_it_is_used(use: str) -> None:
    used = run(f"import plaza.infra.redis.redis\n{use}\nprint(used.__module__)")
    assert used.startswith(DEFERRED)


def test_the_version_of_redis_py_is_known() -> None:
    code = "import plaza.infra.redis.redis, redis.utils as u; print(u.get_lib_version())"
    assert run(code) == run("from importlib.metadata import version; print(version('redis'))")


def test_a_package_that_was_imported_before_stays() -> None:
    code = "import redis.asyncio as r, plaza.infra.redis.redis, redis; print(redis.asyncio is r)"
    assert run(code) == "True"


@pytest.mark.parametrize(
    ("name", "module", "is_deferred"),
    [
        ("Response", "api_gateway", True),
        ("content_types", "content_types", True),
        ("AppSyncResolver", "appsync", False),
    ],
)
def test_a_name_of_the_main_submodule_does_not_run_its_package(
    name: str, module: str, is_deferred: bool
) -> None:
    package = "aws_lambda_powertools.event_handler"
    ran = run(
        f"import sys, plaza.infra.http.resolver, {package}.{module} as expected\n"
        f"from {package} import {name} as used\n"
        f"assert used is getattr(expected, '{name}', expected)\n"
        f"print(sys.modules['{package}'].__spec__ is None)"
    )
    assert ran == str(is_deferred)
