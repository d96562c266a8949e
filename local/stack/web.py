"""The web app on one machine: a program that runs while the stack runs.

  python -m local.stack.web DIRECTORY PORT

It serves ``web/app/dist`` at ``/``, with the URL of the stack's API in its page, and the codes that
were sent by text message at ``/local/texts?phone=+14155550123``: only a local stack stores texts.
"""

import json
import sys
from functools import cached_property, partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from local.paths import ROOT, LocalError, add_layer_to_path
from local.stack.stack import Stack

APP = ROOT / "web" / "app" / "dist"
API_META = '<meta name="plaza-api" content="{}"'


class Server(ThreadingHTTPServer):
    """Serves one stack on a loopback port."""

    daemon_threads = True

    def __init__(self, directory: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), partial(Handler, directory=str(APP)))
        self._directory = directory

    @cached_property
    def stack(self) -> Stack:
        """The stack, which is complete a moment after this server has started."""
        return Stack.load(self._directory, require_all=False)


class Handler(SimpleHTTPRequestHandler):
    """One request; files come from the folder of the app."""

    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        try:
            if url.path == "/local/texts":
                phone = parse_qs(url.query).get("phone", [""])[0]
                self._send("application/json", json.dumps({"code": self._read_code(phone)}))
            elif url.path in ("/", "/index.html"):
                page = (APP / "index.html").read_text()
                of_stack = API_META.format(self.server.stack.base_url)
                page = page.replace(API_META.format(""), f'{of_stack} data-local="true"')
                self._send("text/html; charset=utf-8", page)
            else:
                super().do_GET()
        except LocalError as error:
            self.send_error(HTTPStatus.NOT_FOUND, str(error))

    def end_headers(self) -> None:
        self.send_header("cache-control", "no-store")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing: a path may have a phone number."""

    def _read_code(self, phone: str) -> str:
        from local.stack.sms import read_code  # it imports the layer

        return read_code(self.server.stack, phone)

    def _send(self, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    add_layer_to_path()
    Server(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
