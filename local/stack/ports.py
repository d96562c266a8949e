"""Free loopback ports."""

import contextlib
import random
import socket

from cli.paths import CommandError

MAX_PORT = 65_535

_rng = random.SystemRandom()  # a seed of the caller would give equal ports to concurrent clusters


def free_port() -> int:
    return free_ports(1, range(1))[0]


def free_ports(count: int, among: range) -> list[int]:
    """Return distinct free loopback ports; 0 in ``among`` lets the kernel choose."""
    with contextlib.ExitStack() as probes:
        ports: list[int] = []
        while len(ports) < count:
            probe = probes.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", _rng.choice(among)))
                ports.append(int(probe.getsockname()[1]))
        return ports


def claim_port(port: int) -> int:
    """Return ``port`` itself, or a free one for 0. Raises CommandError when it is in use."""
    if port == 0:
        return free_port()
    if not 0 < port <= MAX_PORT:
        raise CommandError(f"{port} is no port; choose one from 1 to {MAX_PORT}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CommandError(
                f"port {port} is in use or not allowed ({error.strerror}); "
                "choose another with PORT=..., or leave it out for a free one"
            ) from None
    return port
