"""A URL that Plaza sends to is read by two parsers as the same host, or is refused."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
import urllib3
from hypothesis import example, given
from hypothesis import strategies as st

from plaza.infra.http.urls import Url, parse_url

_PARTS = st.sampled_from(
    [
        *("http", "https", "HTTPS", "://", ":", "/", "//", "\\", "@", "?", "#", ".", "-", "%", ";"),
        *("evil.example", ".push.apple.com", "127.0.0.1", "[::1]", "443", "0", "99999", "a:b@"),
        *("\t", "\r\n", "\0", " ", "%2e", "%00", "\u212a", "\uff0e", "_", "&", "user"),
    ]
)
TEXTS = st.one_of(
    st.lists(_PARTS, max_size=12).map("".join),
    st.lists(_PARTS, max_size=10).map(lambda parts: "https://a.example" + "".join(parts)),
    st.lists(_PARTS, max_size=10).map(lambda parts: "https://" + "".join(parts)),
)


@given(TEXTS)
@example("https://evil.example\\.push.apple.com/x")
@example("https://a.example:443@evil.example/")
@example("https://A.Example?x=//evil.example")
def test_two_parsers_read_the_same_host(text: str) -> None:
    try:
        url = parse_url(text)
    except ValueError:
        return
    for spelling in (text, url.text):
        split, other = urlsplit(spelling), urllib3.util.parse_url(spelling)
        assert (split.scheme, split.hostname) == (other.scheme, other.host) == url[:2]
        assert (split.port or url.port, other.port or url.port) == (url.port, url.port)
        assert (split.username, other.auth, split.fragment) == (None, None, "")
    assert parse_url(url.text) == url


@pytest.mark.parametrize(
    ("text", "parsed", "rebuilt"),
    [
        ("https://a.example", Url("https", "a.example", 443, "/"), "https://a.example/"),
        ("HTTPS://A.example:443/B", Url("https", "a.example", 443, "/B"), "https://a.example/B"),
        (
            "https://a.example?x=1",
            Url("https", "a.example", 443, "/?x=1"),
            "https://a.example/?x=1",
        ),
        ("http://a.example:81/@x", Url("http", "a.example", 81, "/@x"), "http://a.example:81/@x"),
    ],
)
def test_a_url_is_rebuilt_from_its_parts(text: str, parsed: Url, rebuilt: str) -> None:
    assert (parse_url(text), parse_url(text).text) == (parsed, rebuilt)


@pytest.mark.parametrize(
    "text",
    [
        *(None, 7, "", "a.example", "//a.example", "ftp://a.example", "https://", "https:///x"),
        *("https://a_b.example/", "https://.a.example/", "https://a..example/", "https://a./"),
        *(
            "https://[::1]/",
            "https://a.example:/",
            "https://a.example:0/",
            "https://a.example:65536/",
        ),
        *(
            "https://user@a.example/",
            "https://a.example/#x",
            "https://a.example\\x",
            "https://a b/",
        ),
        *("https://\u212a.example/", "https://a.example/\n", "https://" + "a" * 254 + "/"),
    ],
)
def test_other_texts_are_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"^(is|has) "):
        parse_url(text)
