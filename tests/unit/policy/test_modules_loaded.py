"""What each function loads: each module costs time at a cold start, 0.4 ms on average.

``python -m tests.unit.policy.test_modules_loaded [FUNCTION ...]`` prints the numbers of modules of
Plaza, and the modules of the given functions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from typing import NamedTuple

import pytest

from tests.unit.policy.modules import FUNCTIONS, LAYER


class Kind(NamedTuple):
    """Functions that start under the same conditions: how many modules of Plaza they may load, why
    so many, and what they never load."""

    max_modules: int
    reason: str
    never: tuple[str, ...]


SCHEMAS, PROCESSOR = "schemas", "plaza.infra.queues.processor"
RESOLVER, RESOLVERS = "plaza.infra.http.resolver", "aws_lambda_powertools.event_handler.appsync"
# The most specific name of a function counts: its own, else its folder's.
KINDS = {
    "api/reactions": Kind(
        98,
        "a burst of likes starts many at once, within 150 ms each: libraries take 110, manifests 2",
        (SCHEMAS, "pydantic", PROCESSOR, RESOLVERS),
    ),
    "api/content": Kind(
        135,
        "a post that many share starts many at once, within 200 ms each: without pydantic",
        (SCHEMAS, "pydantic", PROCESSOR, RESOLVERS),
    ),
    "api": Kind(
        156,
        "a caller waits 200 ms at most; libraries and pydantic take 150",
        (PROCESSOR, RESOLVERS),
    ),
    "queue/prepare_pushes": Kind(
        144,
        "a message in 30 s for 100 users; it reads all that is pushed: groups, orders, reports",
        (SCHEMAS, RESOLVER, "pydantic"),
    ),
    "queue": Kind(
        122,
        "messages wait, but a burst starts many; one context, and those whose values it stores",
        (SCHEMAS, RESOLVER, "pydantic"),
    ),
    "schedule": Kind(
        128,
        "one process of each, which stays warm; most contexts are compared by one",
        (SCHEMAS, RESOLVER, PROCESSOR, "pydantic"),
    ),
    "ops/operate": Kind(
        209,
        "an operator waits; its commands concern all contexts that keep or announce something",
        (RESOLVER, PROCESSOR),
    ),
    "ops/renew_canary": Kind(
        57,
        "it runs once a month, and opens a session; a manifest names what writes its post",
        (SCHEMAS, RESOLVER, PROCESSOR, "pydantic"),
    ),
    "ops/migrate": Kind(
        33,
        "as the functions of a deploy; it reads which kinds of reactions are declared",
        (SCHEMAS, RESOLVER, PROCESSOR, "plaza.infra.redis.redis", "pydantic"),
    ),
    "ops": Kind(
        20,
        "a deploy waits, and it works while everything else is broken: MySQL and AWS alone",
        (SCHEMAS, RESOLVER, PROCESSOR, "plaza.infra.redis.redis", "pydantic"),
    ),
}
# Each function is imported by a process of its own, forked from one that has the libraries loaded.
_FORK = """
import json, os, sys
import plaza.infra  # defers packages
import aws_lambda_powertools.event_handler.api_gateway, botocore.session, pymysql, redis
folder, *functions = sys.argv[1:]
for function in functions:
    if os.fork() == 0:
        sys.path.insert(0, os.path.join(folder, function))
        import app
        names = [name for name in sys.modules if name.startswith("plaza.")]
        empty = [n for n in names if n.count(".") == 1 + n.startswith("plaza.infra.")]
        modules = sorted(set(names) - set(empty))
        print(json.dumps([function, modules]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, function
"""


@cache
def modules_loaded() -> dict[str, list[str]]:
    """Return function -> the modules that are loaded after its import."""
    completed = subprocess.run(
        [sys.executable, "-c", _FORK, str(FUNCTIONS), *all_functions()],
        env=os.environ | {"PYTHONPATH": str(LAYER)},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(line) for line in completed.stdout.splitlines())


def all_functions() -> list[str]:
    """Return names such as ``api/auth``."""
    return sorted(str(app.parent.relative_to(FUNCTIONS)) for app in FUNCTIONS.glob("*/*/app.py"))


def modules_of_plaza(function: str) -> list[str]:
    return [name for name in modules_loaded()[function] if name.startswith("plaza.")]


def kind_of(function: str) -> Kind:
    return KINDS.get(function) or KINDS[function.partition("/")[0]]


def test_every_kind_has_a_function() -> None:
    assert {kind_of(function) for function in all_functions()} == set(KINDS.values())


@pytest.mark.parametrize("function", all_functions())
def test_a_function_loads_no_more_modules_than_its_kind_may(function: str) -> None:
    kind, loaded = kind_of(function), modules_of_plaza(function)
    assert len(loaded) <= kind.max_modules, kind.reason


@pytest.mark.parametrize("function", all_functions())
def test_a_function_does_not_load_what_its_kind_never_needs(function: str) -> None:
    names = set(modules_loaded()[function])
    names |= {"schemas" for name in modules_of_plaza(function) if name.endswith(".schemas")}
    assert names.isdisjoint(kind_of(function).never)


if __name__ == "__main__":
    for name in all_functions():
        print(f"{len(modules_of_plaza(name)):>4} of {kind_of(name).max_modules}  {name}")
        if name in sys.argv:
            print(*(f"        {module}" for module in modules_of_plaza(name)), sep="\n")
