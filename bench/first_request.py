"""The first request of a fresh process, with logins for Redis and MySQL from Secrets Manager."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cli.paths import CommandError

_RUN = """
import json, sys, time
began_s = time.process_time()
event, watched = json.load(sys.stdin)
class context:
    function_name = function_version = "bench"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:bench"
    aws_request_id = "5a1c4b7e-0000-4000-8000-000000000000"
    get_remaining_time_in_millis = lambda: 10_000
import app
imported_s = time.process_time()
answer = app.handler(event, context)
ended_s = time.process_time()
loaded = sorted(name for name in watched if any(each.startswith(name) for each in sys.modules))
print(json.dumps([imported_s - began_s, ended_s - began_s, answer, loaded]), file=sys.stderr)
"""


class FirstRequest(NamedTuple):
    """CPU of the import, and until the first request was answered; the response; and which of the
    watched names modules begin with that are loaded then."""

    import_ms: float
    ms: float
    answer: Any
    loaded: list[str]


def run_first_request(
    python: Path, env: Mapping[str, str], event: Mapping[str, Any], watched: tuple[str, ...] = ()
) -> FirstRequest:
    """Import the function whose folder is in ``PYTHONPATH`` in a new process, and let it answer
    ``event``. Raises CommandError if it fails."""
    completed = subprocess.run(
        [str(python), "-c", _RUN],
        input=json.dumps([event, watched]),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode != 0:
        raise CommandError(f"the function failed:\n{completed.stderr}")
    import_s, request_s, answer, loaded = json.loads(completed.stderr.splitlines()[-1])
    return FirstRequest(import_s * 1000, request_s * 1000, answer, loaded)


def with_logins(
    env: Mapping[str, str], redis_url: str, mysql_url: str, secrets_url: str
) -> dict[str, str]:
    """Return the environment of a function whose logins are in the Secrets Manager of
    ``local.stack.fake_aws`` at ``secrets_url``, and not in the addresses of the stores."""
    kept = {name: value for name, value in env.items() if not name.startswith("PYTHON")}
    redis, mysql = urlsplit(redis_url), urlsplit(mysql_url)
    users = {"REDIS": redis, "MYSQL": mysql}
    return kept | {
        "AWS_LAMBDA_FUNCTION_NAME": "bench",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": secrets_url,
        "PLAZA_REDIS_URL": redis._replace(netloc=redis.netloc.rpartition("@")[2]).geturl(),
        "PLAZA_MYSQL_URL": mysql._replace(netloc=mysql.netloc.rpartition("@")[2]).geturl(),
        **{
            f"PLAZA_{store}_SECRET_ID": f"{url.username or 'default'}:{url.password or 'any'}"
            for store, url in users.items()
        },
    }


def import_path(*folders: Path) -> dict[str, str]:
    """Return the variables of a process that imports from ``folders`` and writes no bytecode."""
    paths = os.pathsep.join(str(folder) for folder in folders)
    return {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
