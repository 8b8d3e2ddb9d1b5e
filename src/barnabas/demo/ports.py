"""Ports for the parts of a demo that no other demo of this machine takes.

Each part listens some time after its port was chosen, so a look at what is free is not enough: two
demos that start together would choose the same. Who chooses a port of TCP therefore binds the port
of UDP with the same number, which nobody else can, and which is free again when the process ends,
however it ends.
"""

from __future__ import annotations

import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_PORTS_TRIED_MAX: Final = 200


class Ports:
    """Ports of loopback that are this demo's until `close`, or the end of its process."""

    def __init__(self) -> None:
        self._claims: dict[int, socket.socket] = {}

    def __enter__(self) -> Ports:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def choose(self, preferred: int) -> int:
        """Claim the first port from `preferred` on that is nobody's.

        Raises OSError if none of the next 200 is free.
        """
        for port in range(preferred, preferred + _PORTS_TRIED_MAX):
            if self.claim(port):
                if _is_free(port):
                    return port
                self._claims.pop(port).close()
        raise OSError(f"no free port from {preferred} to {preferred + _PORTS_TRIED_MAX - 1}")

    def claim(self, port: int) -> bool:
        """Keep other demos from choosing a port; False where it is chosen already."""
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((LOOPBACK, port))
        except OSError:
            claim.close()
            return False
        self._claims[port] = claim
        return True

    def close(self) -> None:
        """Give all of them back."""
        for claim in self._claims.values():
            claim.close()
        self._claims.clear()


def _is_free(port: int) -> bool:
    """Return whether nobody listens there now."""
    with socket.socket() as probe:
        # Connections of a demo that has just ended hold nobody up.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
