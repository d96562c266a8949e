"""URLs that Plaza sends requests to. No I/O."""

from __future__ import annotations

import re
from typing import NamedTuple

# What two parsers read differently is not accepted: a login, a fragment, a backslash, any host but
# a name or an IPv4 address. So the host that is checked is the host that is connected to.
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>(?:[a-z0-9-]+\.)*[a-z0-9-]+)(?::(?P<port>[0-9]{1,5}))?"
    r"""(?P<target>(?:[/?][!"$-\[\]-~]*)?)""",
    re.ASCII | re.IGNORECASE,
)
_LOOPBACK = ("127.0.0.1", "localhost")
_PORTS = {"https": 443, "http": 80}
MAX_HOST = 253


class Url(NamedTuple):
    """A URL in its parts. ``target`` is path and query, from ``/``."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def origin(self) -> str:
        port = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    @property
    def text(self) -> str:
        return self.origin + self.target

    @property
    def is_public_https(self) -> bool:
        """Whether it is https at port 443."""
        return self.scheme == "https" and self.port == _PORTS["https"]

    @property
    def is_loopback_http(self) -> bool:
        """Whether it is http at this machine, as on a local stack."""
        return self.scheme == "http" and self.host in _LOOPBACK


def parse_url(text: object) -> Url:
    """Return the parts of an absolute URL of http or https. Raises ValueError."""
    match = _URL.fullmatch(text) if isinstance(text, str) else None
    if match is None or len(match["host"]) > MAX_HOST:
        raise ValueError("is a URL of http or https with a host, no login and no fragment")
    scheme, target = match["scheme"].lower(), match["target"]
    port = int(match["port"]) if match["port"] else _PORTS[scheme]
    if not 1 <= port <= 65_535:
        raise ValueError("has no valid port")
    return Url(scheme, match["host"].lower(), port, target if target[:1] == "/" else f"/{target}")
