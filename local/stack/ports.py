"""Free loopback ports."""

import socket

from local.paths import LocalError


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def claim_port(port: int) -> int:
    """Return ``port`` itself, or a free one for 0. Raises LocalError when it is in use."""
    if port == 0:
        return free_port()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise LocalError(
                f"port {port} is in use or not allowed ({error.strerror}); "
                "choose another with PORT=..., or leave it out for a free one"
            ) from None
    return port
