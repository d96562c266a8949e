"""The number of modules that each function loads: each costs time at a cold start. The rooms of
infra do not count: they are docstrings.

``python -m tests.unit.policy.test_modules_loaded [FUNCTION ...]`` prints the numbers, and the
modules of the given functions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest

from tests.unit.policy.modules import FUNCTIONS, LAYER

# function -> number of modules of plaza that it loads
MODULES = {
    "api/auth": 69,
    "api/checkins": 65,
    "api/content": 120,
    "api/feed": 110,
    "api/flash_sales": 90,
    "api/follows": 95,
    "api/moderation": 114,
    "api/operations": 84,
    "api/reactions": 67,
    "api/recommendations": 116,
    "api/reconciliation": 72,
    "api/shops": 76,
    "api/system": 42,
    "api/users": 93,
    "ops/create_users": 15,
    "ops/migrate": 15,
    "ops/rotate_secret": 15,
    "queue/acknowledge_reactions": 56,
    "queue/apply_follow_changes": 41,
    "queue/compare_parts": 54,
    "queue/decide_dead_orders": 37,
    "queue/drop_cached": 29,
    "queue/fan_out_post": 41,
    "queue/rebuild_inboxes": 41,
    "queue/rebuild_recommendations": 93,
    "queue/rebuild_shops": 44,
    "queue/rebuild_target": 40,
    "queue/refresh_projections": 77,
    "queue/repair_drift": 64,
    "queue/save_checkins": 34,
    "queue/save_orders": 37,
    "queue/save_reactions": 56,
    "schedule/delete_expired": 40,
    "schedule/erase_accounts": 144,
    "schedule/finalize_vouchers": 39,
    "schedule/follow_binlog": 45,
    "schedule/maintain_log": 43,
    "schedule/publish_unsent": 38,
    "schedule/reconcile": 53,
    "schedule/recover_orders": 53,
    "schedule/refresh_rankings": 94,
    "schedule/refresh_recommendations": 92,
    "schedule/roll_up_votes": 39,
    "schedule/sample_gauges": 69,
    "schedule/scan_keys": 25,
    "schedule/sweep_outbox": 66,
}
# Each function is imported by a process of its own, forked from one that has the libraries loaded.
_FORK = """
import json, os, sys
import aws_lambda_powertools.event_handler, botocore.session, pydantic, pymysql, redis
folder, *functions = sys.argv[1:]
for function in functions:
    if os.fork() == 0:
        sys.path.insert(0, os.path.join(folder, function))
        import app
        names = [name for name in sys.modules if name.startswith("plaza.")]
        rooms = [n for n in names if n.startswith("plaza.infra.") and n.count(".") == 2]
        modules = sorted(set(names) - set(rooms))
        print(json.dumps([function, modules]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, function
"""


@cache
def modules_loaded() -> dict[str, list[str]]:
    """Return function -> the modules of plaza that its import loads."""
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


def test_every_function_has_a_number() -> None:
    assert sorted(MODULES) == all_functions()


@pytest.mark.parametrize("function", all_functions())
def test_a_function_loads_its_number_of_modules(function: str) -> None:
    assert len(modules_loaded()[function]) == MODULES[function], "update the number; avoid more"


if __name__ == "__main__":
    for name, loaded in modules_loaded().items():
        print(f'    "{name}": {len(loaded)},')
        if name in sys.argv:
            print(*(f"        {module}" for module in loaded), sep="\n")
