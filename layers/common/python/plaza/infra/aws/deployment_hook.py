"""A hook of CodeDeploy: tries the new version of a function before a deployment moves traffic to
it.

CodeDeploy invokes it with the ids of the deployment and of the hook, and waits for a status. The
version is invoked directly, with a request that changes nothing; whatever it answers below 500,
such as a 401, shows that it starts, reads its settings and reaches what the request needs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.settings import declare, read_names

_FAILED = 500


class HookSettings(NamedTuple):
    """The settings of the hook. ``smoke_requests``: logical id of a function -> its request, such
    as ``GET /feed``, of ``PLAZA_SMOKE_REQUESTS``."""

    smoke_requests: Mapping[str, str]


class VersionFailed(Exception):
    """A version did not answer, or answered a 5xx; the text says what."""


def _read_requests(env: Mapping[str, str]) -> dict[str, str]:
    entries = read_names(env, "PLAZA_SMOKE_REQUESTS")
    return dict(entry.split("=", 1) for entry in entries)


hook_settings = declare(HookSettings, smoke_requests=_read_requests)


def smoke_version(event: Mapping[str, str], codedeploy: Any = None, lambdas: Any = None) -> str:
    """Try the version that a deployment moves traffic to; report and return ``Succeeded`` or
    ``Failed``, after which CodeDeploy stops the deployment. Four calls of AWS."""
    codedeploy = codedeploy or _connect("codedeploy")
    deployment_id = event["DeploymentId"]
    status, name, version = "Succeeded", "", ""
    try:
        name, version = _read_target(codedeploy, deployment_id)
        _invoke(lambdas or _connect("lambda"), name, version)
        record("version_smoked", name=name, version=version)
    except Exception as error:
        status = "Failed"
        record("version_refused", name=name, version=version, **error_fields(error))
    codedeploy.put_lifecycle_event_hook_execution_status(
        deploymentId=deployment_id,
        lifecycleEventHookExecutionId=event["LifecycleEventHookExecutionId"],
        status=status,
    )
    return status


def make_request(request: str) -> dict[str, Any]:
    """Return the event of a request without a session (``GET /posts/{post_id}``; each id is 1), as
    API Gateway sends it."""
    method, _, path = request.partition(" ")
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    for name in names:
        path = path.replace(f"{{{name}}}", "1")
    return {
        "version": "2.0",
        "routeKey": request,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"accept": "application/json", "host": "smoke", "user-agent": "smoke"},
        **({"pathParameters": dict.fromkeys(names, "1")} if names else {}),
        "requestContext": {
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "smoke",
            },
            "requestId": "smoke-version",
            "routeKey": request,
            "stage": "$default",
        },
        "isBase64Encoded": False,
    }


def _read_target(codedeploy: Any, deployment_id: str) -> tuple[str, str]:
    """Return the name of the function of a deployment, and the new version."""
    [target_id] = codedeploy.list_deployment_targets(deploymentId=deployment_id)["targetIds"]
    [target] = codedeploy.batch_get_deployment_targets(
        deploymentId=deployment_id, targetIds=[target_id]
    )["deploymentTargets"]
    info = target["lambdaTarget"]["lambdaFunctionInfo"]
    return info["functionName"], info["targetVersion"]


def _invoke(lambdas: Any, name: str, version: str) -> None:
    """Invoke a version of a function. Raises VersionFailed."""
    requests = hook_settings().smoke_requests
    request = next((text for id_, text in requests.items() if f"-{id_}-" in name), None)
    if request is None:
        raise VersionFailed(f"PLAZA_SMOKE_REQUESTS has no request of {name}")
    reply = lambdas.invoke(
        FunctionName=name, Qualifier=version, Payload=json.dumps(make_request(request))
    )
    answer = json.loads(reply["Payload"].read())
    if reply.get("FunctionError"):
        raise VersionFailed(f"{request}: {answer.get('errorMessage', 'no answer')}")
    if answer["statusCode"] >= _FAILED:
        raise VersionFailed(f"{request}: {answer['statusCode']}")


def _connect(service: str) -> Any:
    """Return botocore's client of a service."""
    import botocore.session  # slow to import
    from botocore.config import Config

    config = Config(connect_timeout=3, read_timeout=20, retries={"total_max_attempts": 2})
    return botocore.session.get_session().create_client(service, config=config)
