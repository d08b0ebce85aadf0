"""Finding a port on loopback that nobody listens on."""

import random
import socket

LOOPBACK = "127.0.0.1"
NEXT_PORTS_MAX = 100
# Below the range from which Linux and macOS hand out ports for outgoing connections, so that none
# of those takes the port between our look and our server's start.
QUIET_PORTS = range(20_000, 32_000)


class PortTaken(Exception):
    """Somebody else listens on a port that we were told to use."""


def is_free(port: int) -> bool:
    """Say whether a server could listen on this port of loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # A port whose last connections are still dying is free for a server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def free_port_from(wanted: int, *, besides: frozenset[int] = frozenset()) -> int:
    """Return `wanted`, or the next free port above it that is not in `besides`.

    Raises `PortTaken` if there is none among the next hundred.
    """
    for port in range(wanted, wanted + NEXT_PORTS_MAX):
        if port not in besides and is_free(port):
            return port
    raise PortTaken(f"no port from {wanted} to {wanted + NEXT_PORTS_MAX - 1} is free")


def any_free_port() -> int:
    """Return some free port; two callers at the same time hardly ever get the same one."""
    for port in random.SystemRandom().sample(QUIET_PORTS, NEXT_PORTS_MAX):
        if is_free(port):
            return port
    raise PortTaken(f"none of {NEXT_PORTS_MAX} ports tried at random is free")
