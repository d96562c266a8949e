"""MiniStack: AWS on a loopback port, without Docker."""

import functools
import http.client
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cli.paths import ROOT, TOOLS
from local.stack.processes import Process, start_process, wait_until_ready

REGION = "us-east-1"


def start_ministack(directory: Path, *, port: int, attached: bool) -> Process:
    """Start MiniStack on a loopback ``port``.

    Uvicorn serves it, which halves the cost of a sent message compared with its own server. Its
    environment has nothing of the developer's shell (AWS_PROFILE, PLAZA_...).
    """
    command: list[str | Path] = [
        TOOLS / "python", "-P", "-m", "uvicorn", "ministack.app:app",
        "--host=127.0.0.1", f"--port={port}", "--http=httptools", "--no-proxy-headers",
        "--timeout-keep-alive=75", "--timeout-graceful-shutdown=1",
        "--no-access-log", "--log-level=warning",
    ]  # fmt: skip
    return _start(
        directory,
        "ministack",
        command,
        port=port,
        attached=attached,
        env={
            "GATEWAY_PORT": str(port),
            "IOT_MTLS_ENABLED": "0",  # it would listen on all addresses
            "LOG_LEVEL": "WARNING",
            "MINISTACK_REGION": REGION,
            **credentials(),
        },
    )


def start_lambda_service(directory: Path, port: int, *, attached: bool) -> Process:
    """Start ``lambda_service`` with the plan in ``directory``; it listens at ``port``."""
    return _start(
        directory,
        "lambda",
        [sys.executable, "-P", "-m", "local.stack.lambda_service", directory],
        port=port,
        attached=attached,
        env={"PYTHONPATH": str(ROOT)},
    )


def start_web_server(directory: Path, port: int, *, attached: bool) -> Process:
    """Start ``web`` for the stack in ``directory``; it listens at ``port``."""
    return _start(
        directory,
        "web",
        [sys.executable, "-P", "-m", "local.web", directory, str(port)],
        port=port,
        attached=attached,
        env={"PYTHONPATH": str(ROOT)},
    )


def _start(
    directory: Path,
    name: str,
    argv: Sequence[str | Path],
    *,
    port: int,
    attached: bool,
    env: Mapping[str, str],
) -> Process:
    """Start a program and wait until it serves HTTP at ``port``. Raises CommandError."""
    scratch = directory / "tmp"  # removed with the directory
    scratch.mkdir(parents=True, exist_ok=True)
    log = directory / "logs" / f"{name}.log"
    process = start_process(
        name,
        argv,
        log=log,
        cwd=scratch,
        attached=attached,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": str(scratch),
            "TMPDIR": str(scratch),
            **env,
        },
    )
    wait_until_ready(process, lambda: answers_http(port), log, 30)
    return process


def credentials() -> dict[str, str]:
    """Return the AWS settings for the emulator, which accepts any credentials."""
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


@functools.cache
def connect(service: str, endpoint_url: str) -> Any:
    """Return a boto3 client of the emulator, independent of the shell's AWS settings.

    One for each service: making one takes 0.1 s. Its import takes 0.2 s, a third of a command.
    """
    import boto3
    from botocore.config import Config

    return boto3.session.Session().client(  # type: ignore[call-overload]
        service,
        endpoint_url=endpoint_url,
        region_name=REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(read_timeout=180, retries={"max_attempts": 1}),
    )


def answers_http(port: int) -> bool:
    """Return whether a server speaks HTTP on this loopback port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/_ministack/health")
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
