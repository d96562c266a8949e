"""The number of modules that each function loads: each costs time at a cold start.

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
    "api/auth": 67,
    "api/checkins": 63,
    "api/content": 118,
    "api/feed": 108,
    "api/flash_sales": 84,
    "api/follows": 93,
    "api/moderation": 112,
    "api/operations": 82,
    "api/reactions": 65,
    "api/recommendations": 114,
    "api/reconciliation": 70,
    "api/shops": 73,
    "api/system": 40,
    "api/users": 91,
    "ops/create_users": 14,
    "ops/migrate": 14,
    "ops/rotate_secret": 14,
    "queue/acknowledge_reactions": 54,
    "queue/apply_follow_changes": 39,
    "queue/compare_parts": 52,
    "queue/decide_dead_orders": 33,
    "queue/drop_cached": 27,
    "queue/fan_out_post": 39,
    "queue/rebuild_inboxes": 39,
    "queue/rebuild_recommendations": 91,
    "queue/rebuild_shops": 42,
    "queue/rebuild_target": 38,
    "queue/refresh_projections": 75,
    "queue/repair_drift": 62,
    "queue/save_checkins": 32,
    "queue/save_orders": 33,
    "queue/save_reactions": 54,
    "schedule/delete_expired": 38,
    "schedule/erase_accounts": 139,
    "schedule/finalize_vouchers": 36,
    "schedule/follow_binlog": 43,
    "schedule/maintain_log": 41,
    "schedule/publish_unsent": 36,
    "schedule/reconcile": 51,
    "schedule/recover_orders": 48,
    "schedule/refresh_rankings": 92,
    "schedule/refresh_recommendations": 90,
    "schedule/roll_up_votes": 37,
    "schedule/sample_gauges": 67,
    "schedule/scan_keys": 23,
    "schedule/sweep_outbox": 64,
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
        modules = sorted(name for name in sys.modules if name.startswith("plaza."))
        print(json.dumps([function, modules]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, function
"""


@cache
def modules_loaded() -> dict[str, list[str]]:
    """Return function -> the modules of plaza that its import loads."""
    done = subprocess.run(
        [sys.executable, "-c", _FORK, str(FUNCTIONS), *all_functions()],
        env=os.environ | {"PYTHONPATH": str(LAYER)},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


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
