"""Free TCP ports on loopback."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """`count` different ports that nothing listens on right now.

    All are held open until all are known, so that none is handed out twice.
    """
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def free_port() -> int:
    """One such port."""
    return free_ports(1)[0]


def is_listening(port: int) -> bool:
    """Whether something accepts connections on that port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0
