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
    "api/auth": 66,
    "api/checkins": 62,
    "api/content": 117,
    "api/feed": 107,
    "api/flash_sales": 83,
    "api/follows": 92,
    "api/moderation": 111,
    "api/operations": 81,
    "api/reactions": 64,
    "api/recommendations": 113,
    "api/reconciliation": 69,
    "api/shops": 72,
    "api/system": 39,
    "api/users": 90,
    "ops/create_users": 13,
    "ops/migrate": 13,
    "ops/rotate_secret": 13,
    "queue/acknowledge_reactions": 52,
    "queue/apply_follow_changes": 38,
    "queue/compare_parts": 51,
    "queue/decide_dead_orders": 32,
    "queue/drop_cached": 26,
    "queue/fan_out_post": 38,
    "queue/rebuild_inboxes": 38,
    "queue/rebuild_recommendations": 90,
    "queue/rebuild_shops": 41,
    "queue/rebuild_target": 37,
    "queue/refresh_projections": 74,
    "queue/repair_drift": 61,
    "queue/save_checkins": 31,
    "queue/save_orders": 32,
    "queue/save_reactions": 52,
    "schedule/delete_expired": 37,
    "schedule/erase_accounts": 138,
    "schedule/finalize_vouchers": 35,
    "schedule/follow_binlog": 42,
    "schedule/maintain_log": 40,
    "schedule/publish_unsent": 35,
    "schedule/reconcile": 50,
    "schedule/recover_orders": 47,
    "schedule/refresh_rankings": 91,
    "schedule/refresh_recommendations": 89,
    "schedule/roll_up_votes": 36,
    "schedule/sample_gauges": 66,
    "schedule/scan_keys": 22,
    "schedule/sweep_outbox": 62,
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
