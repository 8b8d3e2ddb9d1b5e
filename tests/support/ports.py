"""Ports for the processes of tests: each stays reserved until the tests end.

A port that is only looked up and let go can be given to any outgoing connection before the
process that was meant to listen there has started.
"""

from barnabas.app.local_nodes import PortReservation

HOST = "127.0.0.1"
TRIES = 50

_RESERVED = PortReservation(HOST)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody else is given; a process that a test starts can listen."""
    (port,) = _RESERVED.take(1)
    return port


def free_neighbours() -> int:
    """The first of two such ports that follow each other."""
    for _ in range(TRIES):
        port = free_port()
        try:
            _RESERVED.hold(port + 1)
        except (OSError, OverflowError):
            continue
        return port
    raise OSError(f"no two free ports in a row were found in {TRIES} tries")
