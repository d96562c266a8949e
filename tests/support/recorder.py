"""An AWS account on a closed machine: it records the calls of a deploy, and answers them.

CloudFormation has stacks with parameters, tags and outputs, and executes change sets without making
resources. S3 stores what is uploaded. SAM and boto3 reach it by ``AWS_ENDPOINT_URL``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.support.http_servers import Quiet, serving
from tests.unit.policy.template import load_template

ACCOUNT = "123456789012"
BUCKET = "uploads"
_MANAGED = "aws-sam-cli-managed-default"  # the stack of SAM's own bucket
_SCOPE = re.compile(r"Credential=[^/]+/\d+/([\w-]+)/(\w+)/")
_READS = ("Describe", "GetTemplateSummary", "ListChangeSets")

Form = Mapping[str, str]


@dataclass(slots=True)
class Stack:
    """A stack: its template is the text that was uploaded."""

    status: str
    template: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    policy: str = ""
    is_protected: bool = False
    outputs: dict[str, str] = field(default_factory=dict)


class Recorder:
    """The account. ``calls`` has a line for each call that decides or changes something."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.stacks: dict[str, Stack] = {
            _MANAGED: Stack(
                "CREATE_COMPLETE",
                tags={"ManagedStackSource": "AwsSamCli"},
                outputs={"SourceBucket": BUCKET},
            )
        }
        self.objects: dict[str, bytes] = {}
        self.fails: set[str] = set()
        """Stacks whose next creation fails."""

        self._changes: dict[str, tuple[str, Stack]] = {}

    def answer(self, service: str, region: str, action: str, form: Form) -> tuple[int, str]:
        """Return the status and the body of the answer to a call of a query protocol."""
        name = form.get("StackName", "").rpartition(":stack/")[2].partition("/")[0]
        name = name or form.get("StackName", "")
        if not action.startswith(_READS):
            details = [name, form.get("ChangeSetType", ""), self._describe(action, form)]
            self.calls.append(" ".join([f"{region} {service}:{action}", *filter(None, details)]))
        handler: Callable[[str, Form], str] | None = getattr(self, f"_{action}", None)
        if handler is None:
            return 400, _error("InvalidAction", f"{action} is not recorded")
        try:
            result = handler(name, form)
        except LookupError as error:
            return 400, _error("ValidationError", str(error.args[0]))
        return 200, (
            f"<{action}Response><{action}Result>{result}</{action}Result>"
            f"<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></{action}Response>"
        )

    @staticmethod
    def _describe(action: str, form: Form) -> str:
        match action:
            case "SetStackPolicy":
                return "+".join(
                    s["Effect"] for s in json.loads(form["StackPolicyBody"])["Statement"]
                )
            case "UpdateTerminationProtection":
                return form["EnableTerminationProtection"]
        return ""

    def _find(self, name: str) -> Stack:
        if name not in self.stacks:
            raise LookupError(f"Stack with id {name} does not exist")
        return self.stacks[name]

    # ------------------------------------------------------- answers, by the name of the action

    def _GetCallerIdentity(self, _: str, form: Form) -> str:  # noqa: N802
        return f"<Account>{ACCOUNT}</Account><Arn>arn:aws:iam::{ACCOUNT}:user/deployer</Arn>"

    def _GetSMSSandboxAccountStatus(self, _: str, form: Form) -> str:  # noqa: N802
        return "<IsInSandbox>true</IsInSandbox>"

    def _GetSMSAttributes(self, _: str, form: Form) -> str:  # noqa: N802
        return "<attributes/>"

    def _DescribeStacks(self, name: str, form: Form) -> str:  # noqa: N802
        stack = self._find(name)
        outputs = [{"OutputKey": k, "OutputValue": v} for k, v in stack.outputs.items()]
        parameters = [{"ParameterKey": k, "ParameterValue": v} for k, v in stack.parameters.items()]
        described = {
            "StackName": name,
            "StackId": _arn("stack", name),
            "StackStatus": stack.status,
            "CreationTime": _now(),
            "Outputs": outputs,
            "Parameters": parameters,
            "Tags": [{"Key": k, "Value": v} for k, v in stack.tags.items()],
        }
        return f"<Stacks>{_render([described])}</Stacks>"

    def _CreateChangeSet(self, name: str, form: Form) -> str:  # noqa: N802
        body = form.get("TemplateBody")
        if body is None:
            key = unquote(urlsplit(form["TemplateURL"]).path).partition(f"{BUCKET}/")[2]
            body = self.objects[key].decode()
        kept = self.stacks[name].parameters if name in self.stacks else {}
        parameters = {
            member["ParameterKey"]: kept.get(member["ParameterKey"], "")
            if member.get("UsePreviousValue") == "true"
            else member.get("ParameterValue", "")
            for member in _members(form, "Parameters")
        }
        tags = {member["Key"]: member["Value"] for member in _members(form, "Tags")}
        self._changes[name] = form["ChangeSetType"], Stack("", body, parameters, tags)
        if form["ChangeSetType"] == "CREATE":
            self.stacks[name] = Stack("REVIEW_IN_PROGRESS")
        change = _arn("changeSet", form["ChangeSetName"])
        return f"<Id>{change}</Id><StackId>{_arn('stack', name)}</StackId>"

    def _DescribeChangeSet(self, name: str, form: Form) -> str:  # noqa: N802
        return (
            f"<StackName>{name}</StackName><StackId>{_arn('stack', name)}</StackId>"
            "<Status>CREATE_COMPLETE</Status><ExecutionStatus>AVAILABLE</ExecutionStatus>"
            "<Changes/>"
        )

    def _ListChangeSets(self, name: str, form: Form) -> str:  # noqa: N802
        self._find(name)
        pending = [{"ChangeSetId": f"of-{name}", "ExecutionStatus": "AVAILABLE"}]
        return f"<Summaries>{_render(pending if name in self._changes else [])}</Summaries>"

    def _DeleteChangeSet(self, name: str, form: Form) -> str:  # noqa: N802
        del self._changes[form["ChangeSetName"].removeprefix("of-")]
        return ""

    def _ExecuteChangeSet(self, name: str, form: Form) -> str:  # noqa: N802
        kind, changed = self._changes.pop(name)
        if kind == "CREATE" and name in self.fails:
            self.fails.discard(name)
            self.stacks[name] = Stack("ROLLBACK_COMPLETE", tags=changed.tags)
            return ""
        if kind == "UPDATE":
            changed.policy = self.stacks[name].policy
            changed.is_protected = self.stacks[name].is_protected
        changed.status = f"{kind}_COMPLETE"
        declared = load_template(changed.template).get("Outputs", {})
        changed.outputs = {o: f"of-{o}" for o, item in declared.items() if "Condition" not in item}
        self.stacks[name] = changed
        return ""

    def _DescribeStackEvents(self, name: str, form: Form) -> str:  # noqa: N802
        stack = self._find(name)
        event = {
            "StackId": _arn("stack", name),
            "EventId": f"{name}-{stack.status}",
            "StackName": name,
            "LogicalResourceId": name,
            "PhysicalResourceId": _arn("stack", name),
            "ResourceType": "AWS::CloudFormation::Stack",
            "ResourceStatus": stack.status,
            "Timestamp": _now(),
        }
        return f"<StackEvents>{_render([event])}</StackEvents>"

    def _GetTemplateSummary(self, name: str, form: Form) -> str:  # noqa: N802
        declared = load_template(self._find(name).template)["Parameters"]
        parameters = [
            {"ParameterKey": parameter, "ParameterType": item["Type"]}
            | ({"DefaultValue": str(item["Default"])} if "Default" in item else {})
            for parameter, item in declared.items()
        ]
        return f"<Parameters>{_render(parameters)}</Parameters>"

    def _SetStackPolicy(self, name: str, form: Form) -> str:  # noqa: N802
        self._find(name).policy = form["StackPolicyBody"]
        return ""

    def _UpdateTerminationProtection(self, name: str, form: Form) -> str:  # noqa: N802
        self._find(name).is_protected = form["EnableTerminationProtection"] == "true"
        return f"<StackId>{_arn('stack', name)}</StackId>"

    def _DeleteStack(self, name: str, form: Form) -> str:  # noqa: N802
        del self.stacks[name]
        return ""


class _Handler(Quiet, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recorder: Recorder

    def do_POST(self) -> None:
        form = {k: v[0] for k, v in parse_qs(self._read().decode(), keep_blank_values=True).items()}
        service, region = self._read_scope()
        status, body = self.recorder.answer(service, region, form["Action"], form)
        self._reply(status, body.encode(), "text/xml")

    def do_GET(self) -> None:
        service, region = self._read_scope()
        if self.path.endswith("/account-settings/") or self.path.endswith("/account-settings"):
            self.recorder.calls.append(f"{region} {service}:GetAccountSettings")
            body = {"AccountLimit": {"ConcurrentExecutions": 10}, "AccountUsage": {}}
            self._reply(200, json.dumps(body).encode(), "application/json")
        else:
            self._reply(200, b"<LocationConstraint/>", "text/xml")

    def do_HEAD(self) -> None:
        self._reply(200 if self._key() in self.recorder.objects else 404, b"", "text/xml")

    def do_PUT(self) -> None:
        body = self._read()
        if "aws-chunked" in self.headers.get("content-encoding", ""):
            body = _join_chunks(body)
        self.recorder.objects[self._key()] = body
        self._reply(200, b"", "text/xml")

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/").removeprefix(f"{BUCKET}/")

    def _read_scope(self) -> tuple[str, str]:
        scope = _SCOPE.search(self.headers.get("authorization", ""))
        return (scope[2], scope[1]) if scope else ("", "")

    def _read(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _reply(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("etag", '"1"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def record() -> Iterator[tuple[Recorder, str]]:
    """Serve an account on a port of this machine; yield it with its URL."""
    recorder = Recorder()
    handler = type("Handler", (_Handler,), {"recorder": recorder})
    with serving(handler) as url:
        yield recorder, url


def _join_chunks(body: bytes) -> bytes:
    joined, rest = b"", body
    while rest:
        head, _, rest = rest.partition(b"\r\n")
        size = int(head.split(b";")[0], 16)
        if not size:
            break
        joined, rest = joined + rest[:size], rest[size + 2 :]
    return joined


def _members(form: Form, name: str) -> list[dict[str, str]]:
    members: dict[int, dict[str, str]] = {}
    for key, value in form.items():
        if match := re.fullmatch(rf"{name}\.member\.(\d+)\.(\w+)", key):
            members.setdefault(int(match[1]), {})[match[2]] = value
    return [members[number] for number in sorted(members)]


def _render(items: list[dict[str, Any]]) -> str:
    return "".join(f"<member>{_render_fields(item)}</member>" for item in items)


def _render_fields(item: Mapping[str, Any]) -> str:
    return "".join(
        f"<{key}>{_render(value) if isinstance(value, list) else escape(str(value))}</{key}>"
        for key, value in item.items()
    )


def _error(code: str, text: str) -> str:
    return (
        f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code>"
        f"<Message>{escape(text)}</Message></Error><RequestId>1</RequestId></ErrorResponse>"
    )


def _arn(kind: str, name: str) -> str:
    return f"arn:aws:cloudformation:eu-central-1:{ACCOUNT}:{kind}/{name}/1"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
