"""The server of the web pages: who may read codes, and who may break the stack."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from cli.paths import ROOT, CommandError
from local.stack.stack import Stack
from local.web import Server

API = "http://127.0.0.1:5000"
SESSION = {"token": "t", "expiresAt": 1, "user": {}}


@dataclass
class FakeControl:
    """Records actions; refuses the action ``refused``."""

    actions: list[str] = field(default_factory=list)

    def run(self, action: str) -> dict[str, Any]:
        if action == "refused":
            raise CommandError("a crowd is playing already")
        self.actions.append(action)
        return self.read_state()

    def read_state(self) -> dict[str, Any]:
        return {"copies": 1}

    def audit(self, wait: bool) -> dict[str, Any]:
        self.actions.append("wait for the audit" if wait else "audit")
        return {"clean": True}

    def open_operator_session(self) -> dict[str, Any]:
        return SESSION


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path, 0)
    stack = Stack(tmp_path)
    stack.base_url = API
    made.__dict__ |= {"stack": stack, "control": FakeControl()}
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def ask(
    server: Server, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    """Send a request; ``_`` in names of headers is ``-``, and ``token`` is the header's."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token := sent.pop("token", ""):
        sent["x-plaza-control"] = token
    connection.request(method, path, body, sent)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, {k.lower(): v for k, v in response.getheaders()}, text


def read_token(server: Server, **headers: str) -> str:
    """Return the token in the console's page; empty without one."""
    status, _, page = ask(server, "GET", "/console/", **headers)
    assert status == 200
    match = re.search(r'<meta name="plaza-control" content="([^"]*)"', page)
    assert match is not None
    return match[1]


def test_both_pages_name_the_api_and_only_the_console_has_the_token(server: Server) -> None:
    _, headers, app = ask(server, "GET", "/")
    _, _, console = ask(server, "GET", "/console/")
    for page in (app, console):
        assert f'<meta name="plaza-api" content="{API}" data-local="true"' in page
        assert f"; connect-src 'self' {API};" in page
    assert read_token(server) == server.token
    assert server.token not in app
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize("name", ["app", "console"])
@pytest.mark.parametrize("folder", [".", "dist"])
def test_a_page_connects_to_the_origin_of_its_api_only(name: str, folder: str) -> None:
    page = (ROOT / "web" / name / folder / "index.html").read_text()
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives == {
        "default-src": "'self'",
        "connect-src": "'self'",
        "img-src": "https: data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_files_of_both_pages_are_served_and_no_others(server: Server) -> None:
    assert ask(server, "GET", "/app.js")[0] == 200
    assert ask(server, "GET", "/console/console.js")[0] == 200
    assert ask(server, "GET", "/console.js")[0] == 404
    assert ask(server, "GET", "/console/../../package.json")[0] == 404
    status, headers, _ = ask(server, "GET", "/console")
    assert (status, headers["location"]) == (308, "/console/")


def test_pictures_of_the_demo_are_served_and_the_page_may_show_them(server: Server) -> None:
    status, headers, text = ask(server, "GET", "/pictures/harbour.svg")
    assert (status, headers["content-type"], text[:4]) == (200, "image/svg+xml", "<svg")
    assert ask(server, "GET", "/pictures/../up.py")[0] == 404
    assert ask(server, "GET", "/pictures/none.svg")[0] == 404
    for path in ("/", "/console/"):
        assert "; img-src 'self' https: data:;" in ask(server, "GET", path)[2]


def test_a_connection_serves_files_of_both_pages_in_turn(server: Server) -> None:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    for path in ("/app.js", "/console/console.js", "/app.js"):
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        assert response.status == 200, path
    connection.close()


def test_an_action_needs_the_token(server: Server) -> None:
    body = json.dumps({"action": "stop-redis"})
    assert ask(server, "POST", "/local/control", body)[0] == 403
    assert ask(server, "POST", "/local/control", body, token="é")[0] == 403
    assert ask(server, "GET", "/local/control", token="wrong")[0] == 403
    assert ask(server, "POST", "/local/operator")[0] == 403
    assert ask(server, "POST", "/local/audit")[0] == 403
    assert server.control.actions == []  # type: ignore[attr-defined]
    assert ask(server, "POST", "/local/control", body, token=server.token)[0] == 200
    assert server.control.actions == ["stop-redis"]  # type: ignore[attr-defined]
    _, _, session = ask(server, "POST", "/local/operator", token=server.token)
    assert json.loads(session) == SESSION


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[", "localhost@x"])
def test_a_name_that_leads_to_this_machine_gets_nothing(server: Server, host: str) -> None:
    assert read_token(server, host=host) == ""
    assert ask(server, "GET", "/local/control", host=host, token=server.token)[0] == 403
    assert ask(server, "GET", "/local/texts?phone=%2B14155550123", host=host)[0] == 403


def test_another_origin_is_refused_although_it_has_the_token(server: Server) -> None:
    port, token = server.server_port, server.token
    for origin in ("http://evil.example", f"http://127.0.0.1:{port + 1}", "null"):
        assert ask(server, "POST", "/local/audit", token=token, origin=origin)[0] == 403
    own = f"http://127.0.0.1:{port}"
    assert ask(server, "POST", "/local/audit", token=token, origin=own)[0] == 200


def test_an_audit_waits_if_it_is_asked_to(server: Server) -> None:
    for body in (None, '{"wait": false}', '{"wait": true}'):
        assert ask(server, "POST", "/local/audit", body, token=server.token)[0] == 200
    assert ask(server, "POST", "/local/audit", "[]", token=server.token)[0] == 409
    actions = server.control.actions  # type: ignore[attr-defined]
    assert actions == ["audit", "audit", "wait for the audit"]


def test_the_console_links_to_runbooks_of_the_clone(server: Server) -> None:
    _, _, console = ask(server, "GET", "/console/")
    assert '<meta name="plaza-runbooks" content="/runbooks/{}.md"' in console
    status, headers, text = ask(server, "GET", "/runbooks/drift.md")
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert text == (ROOT / "docs" / "runbooks" / "drift.md").read_text()
    for path in ("/runbooks/nothing.md", "/runbooks/../limits.md", "/runbooks/%2e%2e/limits.md"):
        assert ask(server, "GET", path)[0] == 404


def test_a_refused_action_says_why(server: Server) -> None:
    body = json.dumps({"action": "refused"})
    status, _, text = ask(server, "POST", "/local/control", body, token=server.token)
    assert (status, json.loads(text)["detail"]) == (409, "a crowd is playing already")


@pytest.mark.parametrize("body", ["", "[]", "{", '{"act": 1}'])
def test_a_body_without_an_action_is_refused(server: Server, body: str) -> None:
    assert ask(server, "POST", "/local/control", body, token=server.token)[0] == 409


def test_a_long_or_strange_body_is_not_read(server: Server) -> None:
    token = server.token
    assert ask(server, "POST", "/local/control", "x" * 1001, token=token)[0] == 400
    assert ask(server, "POST", "/local/control", content_length="-1", token=token)[0] == 400
    assert ask(server, "POST", "/local/nothing", "{}", token=token)[0] == 404
