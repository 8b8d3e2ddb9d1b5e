"""Ports that nodes will listen on, chosen before they start."""

import socket
import sys


class PortReservation:
    """Free ports that stay ours until `close`, for nodes of this and of other processes.

    A socket that is bound and never listens keeps a port from everybody who does not ask for
    SO_REUSEADDR, as nobody who takes any free port does, and from being chosen for outgoing
    connections; connecting to it is refused. A node that listens there does ask. On systems
    other than Linux the second bind would fail, so there the port is only free when chosen.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._sockets: list[socket.socket] = []

    def take(self, count: int) -> list[int]:
        """`count` free ports. Raises OSError."""
        taken = [self._bind(0) for _ in range(count)]
        ports: list[int] = [bound.getsockname()[1] for bound in taken]
        self._keep(taken)
        return ports

    def hold(self, port: int) -> None:
        """Hold this port. Raises OSError where another holds it."""
        self._keep([self._bind(port)])

    def _bind(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self._host, port))
        except OSError:
            bound.close()
            raise
        return bound

    def _keep(self, taken: list[socket.socket]) -> None:
        if sys.platform == "linux":
            self._sockets += taken
        else:
            for bound in taken:
                bound.close()

    def close(self) -> None:
        """Let go of all ports."""
        for bound in self._sockets:
            bound.close()
        self._sockets.clear()


def free_ports(count: int, host: str) -> list[int]:
    """Ports that are free at this moment."""
    reservation = PortReservation(host)
    try:
        return reservation.take(count)
    finally:
        reservation.close()
