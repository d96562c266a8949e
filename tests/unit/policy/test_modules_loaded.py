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
    "api/auth": 68,
    "api/checkins": 64,
    "api/content": 119,
    "api/feed": 109,
    "api/flash_sales": 85,
    "api/follows": 94,
    "api/moderation": 113,
    "api/operations": 83,
    "api/reactions": 66,
    "api/recommendations": 115,
    "api/reconciliation": 71,
    "api/shops": 74,
    "api/system": 41,
    "api/users": 92,
    "ops/create_users": 15,
    "ops/migrate": 15,
    "ops/rotate_secret": 15,
    "queue/acknowledge_reactions": 55,
    "queue/apply_follow_changes": 40,
    "queue/compare_parts": 53,
    "queue/decide_dead_orders": 34,
    "queue/drop_cached": 28,
    "queue/fan_out_post": 40,
    "queue/rebuild_inboxes": 40,
    "queue/rebuild_recommendations": 92,
    "queue/rebuild_shops": 43,
    "queue/rebuild_target": 39,
    "queue/refresh_projections": 76,
    "queue/repair_drift": 63,
    "queue/save_checkins": 33,
    "queue/save_orders": 34,
    "queue/save_reactions": 55,
    "schedule/delete_expired": 39,
    "schedule/erase_accounts": 140,
    "schedule/finalize_vouchers": 37,
    "schedule/follow_binlog": 44,
    "schedule/maintain_log": 42,
    "schedule/publish_unsent": 37,
    "schedule/reconcile": 52,
    "schedule/recover_orders": 49,
    "schedule/refresh_rankings": 93,
    "schedule/refresh_recommendations": 91,
    "schedule/roll_up_votes": 38,
    "schedule/sample_gauges": 68,
    "schedule/scan_keys": 24,
    "schedule/sweep_outbox": 65,
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
