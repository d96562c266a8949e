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
    "api/auth": 65,
    "api/checkins": 61,
    "api/content": 116,
    "api/feed": 106,
    "api/flash_sales": 82,
    "api/follows": 91,
    "api/moderation": 110,
    "api/operations": 80,
    "api/reactions": 64,
    "api/recommendations": 112,
    "api/reconciliation": 68,
    "api/shops": 71,
    "api/system": 38,
    "api/users": 89,
    "ops/create_users": 12,
    "ops/migrate": 12,
    "ops/rotate_secret": 12,
    "queue/acknowledge_reactions": 51,
    "queue/apply_follow_changes": 37,
    "queue/compare_parts": 50,
    "queue/decide_dead_orders": 31,
    "queue/drop_cached": 25,
    "queue/fan_out_post": 37,
    "queue/rebuild_inboxes": 37,
    "queue/rebuild_recommendations": 89,
    "queue/rebuild_shops": 40,
    "queue/rebuild_target": 36,
    "queue/refresh_projections": 73,
    "queue/repair_drift": 60,
    "queue/save_checkins": 30,
    "queue/save_orders": 31,
    "queue/save_reactions": 51,
    "schedule/delete_expired": 36,
    "schedule/erase_accounts": 137,
    "schedule/finalize_vouchers": 34,
    "schedule/follow_binlog": 41,
    "schedule/maintain_log": 39,
    "schedule/publish_unsent": 34,
    "schedule/reconcile": 49,
    "schedule/recover_orders": 46,
    "schedule/refresh_rankings": 90,
    "schedule/refresh_recommendations": 88,
    "schedule/roll_up_votes": 35,
    "schedule/sample_gauges": 65,
    "schedule/scan_keys": 21,
    "schedule/sweep_outbox": 61,
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
