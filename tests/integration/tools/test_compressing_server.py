"""The server that Lighthouse measures: it compresses texts, as the edge does."""

from __future__ import annotations

import gzip
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tools.lighthouse.server import serve_compressed


def fetch(url: str, path: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    connection.request("GET", path, headers={"accept-encoding": "gzip"})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<p>Hello</p>")
    (folder / "assets" / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.txt").write_text("no")
    return folder


def test_texts_are_compressed_and_pictures_are_not(folder: Path) -> None:
    with serve_compressed(folder) as url:
        response, body = fetch(url, "/index.html?h=hello")
        assert response.headers["content-encoding"] == "gzip"
        assert gzip.decompress(body) == b"<p>Hello</p>"
        response, body = fetch(url, "/assets/a.png")
        assert (response.headers["content-encoding"], body) == (None, b"\x89PNG")
        assert response.headers["cache-control"] == "max-age=31536000"


@pytest.mark.parametrize("path", ["/missing.html", "/../secret.txt", "/"])
def test_what_is_no_file_of_the_folder_is_missing(folder: Path, path: str) -> None:
    with serve_compressed(folder) as url:
        assert fetch(url, path)[0].status == 404


def test_the_answers_of_another_server_are_compressed(folder: Path) -> None:
    with serve_compressed(folder) as origin, serve_compressed(origin) as url:
        response, body = fetch(url, "/index.html")
        assert (response.status, gzip.decompress(body)) == (200, b"<p>Hello</p>")
        assert fetch(url, "/missing.html")[0].status == 404
