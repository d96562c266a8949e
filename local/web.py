"""The web pages on one machine: a program that runs while the stack runs.

  python -m local.web DIRECTORY PORT

It serves ``web/app/dist`` at ``/`` and ``web/console/dist`` at ``/console/``, with the URL of the
stack's API in their pages and Content-Security-Policies, and what only a local stack has:

  GET  /pictures/harbour.svg             a picture of the demo crowd
  GET  /issuer/keys                      the key of the issuer of ID tokens, and its configuration
  GET  /local/texts?phone=+14155550123   the code that was sent by text message
  POST /local/operator                   a session of an operator
  GET  /local/control                    what is broken, and how far the crowd is
  POST /local/control                    break or repair something: {"action": "stop-redis"}
  POST /local/audit                      the report of the audit; {"wait": true}: when nothing is in
                                         transit, or after a moment
  GET  /runbooks/drift.md                a runbook
  GET  /docs/problems                    the documentation, once `make docs` built it; before, the
                                         text of docs/problems.md

All but pictures, documents and the issuer answer only requests to a loopback name; all but those
and texts only the console's page, which has their token.
"""

import json
import re
import secrets
import sys
from collections.abc import Callable
from functools import cached_property
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from cli.paths import ROOT, CommandError, add_layer_to_path
from local.stack.stack import Stack

if TYPE_CHECKING:
    from local.load.control import Control

WEB = ROOT / "web"
CONSOLE = "/console/"
PICTURES = "/pictures/"
DOCS = "/docs/"
PROBLEMS = f"{DOCS}problems"
SITE = ROOT / ".site" / "html"
API_META = '<meta name="plaza-api" content="{}"'
CONNECT = "connect-src 'self'"
IMAGES = "img-src"
CONTROL_META = '<meta name="plaza-control" content="{}"'
APP_META = '<meta name="plaza-app" content="{}"'
RUNBOOKS_META = '<meta name="plaza-runbooks" content="{}"'
TOKEN_HEADER = "x-plaza-control"
ISSUER_PATHS = ("/issuer/.well-known/openid-configuration", "/issuer/keys")
MAX_BODY_BYTES = 1000
_RUNBOOK = re.compile(r"/runbooks/([a-z-]{1,40}\.md)")
_LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")


class Server(ThreadingHTTPServer):
    """Serves one stack on a loopback port."""

    daemon_threads = True

    def __init__(self, directory: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._directory = directory
        self.token = secrets.token_urlsafe()

    @cached_property
    def stack(self) -> Stack:
        """The stack, which is complete a moment after this server has started."""
        return Stack.load(self._directory, require_all=False)

    def read_issuer(self, path: str) -> dict[str, Any]:
        """Return a document of the stack's issuer."""
        from local.stack.issuer import read_document  # it imports cryptography

        return read_document(self._directory, path)

    @cached_property
    def control(self) -> "Control":
        """What breaks the stack; it imports the layer."""
        from local.load.control import Control

        return Control(self.stack)


class Handler(SimpleHTTPRequestHandler):
    """One request; files come from the folders of the pages."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/local/texts":
            phone = parse_qs(url.query).get("phone", [""])[0]
            self._answer(self._is_to_loopback(), lambda: {"code": self._read_code(phone)})
        elif url.path == "/local/control":
            self._answer(self._is_from_console(), lambda: self.server.control.read_state())
        elif url.path in ISSUER_PATHS:
            self._send_json(HTTPStatus.OK, self.server.read_issuer(url.path))
        elif runbook := _RUNBOOK.fullmatch(url.path):
            self._send_runbook(runbook[1])
        elif url.path == PROBLEMS:
            self._send_problems()
        elif url.path == CONSOLE.rstrip("/"):
            self._send(HTTPStatus.PERMANENT_REDIRECT, "text/plain", "", location=CONSOLE)
        elif url.path in ("/", "/index.html"):
            self._send_page("app")
        elif url.path in (CONSOLE, f"{CONSOLE}index.html"):
            self._send_page("console")
        else:
            super().do_GET()

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._send_json(HTTPStatus.BAD_REQUEST, {"detail": "The body is too long."})
            return
        body = self.rfile.read(int(length))
        routes: dict[str, Callable[[], Any]] = {
            "/local/control": lambda: self.server.control.run(_read_action(body)),
            "/local/operator": lambda: self.server.control.open_operator_session(),
            "/local/audit": lambda: self.server.control.audit(_read_wait(body)),
        }
        if (route := routes.get(self.path)) is None:
            self._send_json(HTTPStatus.NOT_FOUND, {"detail": "There is no such path."})
        else:
            self._answer(self._is_from_console(), route)

    def translate_path(self, path: str) -> str:
        """Return the file of a path; the console, the pictures and the documentation have
        folders of their own."""
        if path.startswith(PICTURES):
            self.directory = str(ROOT / "local" / "pictures")
            return super().translate_path(path.removeprefix(PICTURES.rstrip("/")))
        if path.startswith(DOCS):
            self.directory = str(SITE)
            return super().translate_path(path.removeprefix(DOCS.rstrip("/")))
        is_of_console = path.startswith(CONSOLE)
        self.directory = str(WEB / ("console" if is_of_console else "app") / "dist")
        if is_of_console:
            path = path.removeprefix(CONSOLE.rstrip("/"))
        return super().translate_path(path)

    def end_headers(self) -> None:
        self.send_header("cache-control", "no-store")
        self.send_header("x-frame-options", "DENY")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing: a path may have a phone number."""

    def _is_to_loopback(self) -> bool:
        """Return whether the request names this machine: a name of an attacker may lead here."""
        return _LOOPBACK.fullmatch(self.headers.get("host", "")) is not None

    def _is_from_console(self) -> bool:
        """Return whether the request is of the console's page, which alone can read the token."""
        origin = self.headers.get("origin")
        token = self.headers.get(TOKEN_HEADER, "").encode()
        return (
            self._is_to_loopback()
            and (origin is None or origin == f"http://{self.headers['host']}")
            and secrets.compare_digest(token, self.server.token.encode())
        )

    def _answer(self, is_allowed: bool, read: Callable[[], Any]) -> None:
        """Send what ``read`` returns, or why it fails."""
        if not is_allowed:
            self._send_json(HTTPStatus.FORBIDDEN, {"detail": "Only a page of this stack may ask."})
            return
        try:
            self._send_json(HTTPStatus.OK, read())
        except CommandError as error:
            self._send_json(HTTPStatus.CONFLICT, {"detail": str(error)})

    def _read_code(self, phone: str) -> str:
        from local.stack.sms import read_code  # it imports the layer

        return read_code(self.server.stack, phone)

    def _send_page(self, name: str) -> None:
        page = (WEB / name / "dist" / "index.html").read_text()
        of_stack = API_META.format(self.server.stack.base_url)
        page = page.replace(API_META.format(""), f'{of_stack} data-local="true"')
        page = page.replace(RUNBOOKS_META.format(""), RUNBOOKS_META.format("/runbooks/{}.md"))
        page = page.replace(APP_META.format(""), APP_META.format("/"))
        page = page.replace(CONNECT, f"{CONNECT} {self.server.stack.base_url}")
        page = page.replace(IMAGES, f"{IMAGES} 'self'")
        if self._is_to_loopback():
            page = page.replace(CONTROL_META.format(""), CONTROL_META.format(self.server.token))
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", page)

    def _send_runbook(self, name: str) -> None:
        path = ROOT / "docs" / "runbooks" / name
        if path.is_file():
            self._send(HTTPStatus.OK, "text/plain; charset=utf-8", path.read_text())
        else:
            self._send_json(HTTPStatus.NOT_FOUND, {"detail": "There is no such runbook."})

    def _send_problems(self) -> None:
        """Send the page of problems, or its text if the site is not built."""
        if (page := SITE / "problems.html").is_file():
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", page.read_text())
        else:
            text = (ROOT / "docs" / "problems.md").read_text()
            self._send(HTTPStatus.OK, "text/plain; charset=utf-8", text)

    def _send_json(self, status: HTTPStatus, answer: Any) -> None:
        self._send(status, "application/json", json.dumps(answer))

    def _send(self, status: HTTPStatus, content_type: str, text: str, **headers: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _read_action(body: bytes) -> str:
    """Return the action of a request's body. Raises CommandError."""
    try:
        return str(json.loads(body)["action"])
    except (ValueError, KeyError, TypeError):
        raise CommandError("the body has no action") from None


def _read_wait(body: bytes) -> bool:
    """Return whether an audit waits; False without a body. Raises CommandError."""
    try:
        return bool(body and json.loads(body)["wait"])
    except (ValueError, KeyError, TypeError):
        raise CommandError("the body is not understood") from None


if __name__ == "__main__":
    add_layer_to_path()
    Server(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
