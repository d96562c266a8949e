"""A server on the loopback interface that sends compressed files, as the edge does."""

import gzip
import mimetypes
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache, partial
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

COMPRESSED = ("text/", "application/javascript", "application/json", "image/svg+xml")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, source: Path | str, *args: object) -> None:
        self._read = (
            partial(_read_file, source) if isinstance(source, Path) else partial(_fetch, source)
        )
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        status, kind, body = self._read(self.path)
        self.send_response(status)
        self.send_header("content-type", kind)
        if kind.startswith(COMPRESSED) and "gzip" in self.headers.get("accept-encoding", ""):
            body = _compress(body)
            self.send_header("content-encoding", "gzip")
        self.send_header(
            "cache-control", "max-age=31536000" if "/assets/" in self.path else "no-cache"
        )
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serve_compressed(source: Path | str) -> Iterator[str]:
    """Serve a folder, or what another server answers; yield the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, source)) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@cache
def _compress(body: bytes) -> bytes:
    return gzip.compress(body)


def _read_file(folder: Path, path: str) -> tuple[int, str, bytes]:
    file = (folder / urlsplit(path).path.lstrip("/")).resolve()
    if not file.is_relative_to(folder.resolve()) or not file.is_file():
        return HTTPStatus.NOT_FOUND, "text/plain", b"Not found"
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    return (
        HTTPStatus.OK,
        kind.replace("text/javascript", "application/javascript"),
        file.read_bytes(),
    )


def _fetch(url: str, path: str) -> tuple[int, str, bytes]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    with closing(connection):
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.headers["content-type"], response.read()
