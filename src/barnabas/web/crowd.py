"""The connections of an HTTP server: counts them, and closes the longest silent one at the limit.

A connection either waits for its client (to send a request, the rest of one, or to read an answer)
or is served. When a connection comes and there are as many as allowed, the one that has waited
longest for its client is closed; if none waits, the new one is refused. So clients that are silent
cannot shut others out.
"""

import threading
from collections.abc import Callable
from typing import Final

from barnabas.base import descriptors

HEAD_BYTES_MAX: Final = 64 * 1024
"""A longer head of a request is refused with 431. (Jetty's is 8 KiB.)"""
HEAD_S: Final = 15.0
"""A head arrives within this time of its first byte, or the connection ends."""
HANDSHAKE_S: Final = 15.0
BODY_S: Final = 120.0
"""A body arrives within this time of its head."""
UNREAD_S: Final = 120.0
"""A client reads an answer within this time."""
UNREAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""Total of unread answers; above it, the connections that have not read for longest are closed."""
CONNECTIONS_MAX: Final = 1_000
_OWN_DESCRIPTORS: Final = 64
"""Descriptors kept free for the process's own files and sockets."""


class Place:
    """The place of one connection; `close` ends it."""

    __slots__ = ("_crowd", "close")

    def __init__(self, crowd: "Crowd", close: Callable[[], None]) -> None:
        self._crowd = crowd
        self.close = close

    def wait(self) -> None:
        """Wait for the client; called again when the client has done something."""
        self._crowd.waits(self)

    def serve(self) -> None:
        """The server is answering: do not close the connection for another."""
        self._crowd.serves(self)

    def unread(self, size_bytes: int) -> None:
        """Count bytes of answers that the client leaves unread; 0: it has read on."""
        self._crowd.holds(self, size_bytes)

    def leave(self) -> None:
        """The connection is closed."""
        self._crowd.leaves(self)


class Crowd:
    """At most `limit` connections, and no more than the process has descriptors for."""

    def __init__(
        self, limit: int = CONNECTIONS_MAX, unread_bytes_max: int = UNREAD_BYTES_MAX
    ) -> None:
        # Below what the reserve of descriptors leaves: else accepting would stop before any leaves.
        spare = descriptors.limit() - descriptors.reserve_of(descriptors.limit())
        self._limit = max(1, min(limit, spare - descriptors.open_count() - _OWN_DESCRIPTORS))
        self._unread_bytes_max = unread_bytes_max
        self._places: set[Place] = set()
        self._waiting: dict[Place, None] = {}
        """Places that wait for their client, the longest first."""
        self._unread: dict[Place, int] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        """The number of connections."""
        return len(self._places)

    def enter(self, close: Callable[[], None]) -> Place | None:
        """Return a place that waits for its client; None if all are taken by those served."""
        place, ended = Place(self, close), None
        with self._lock:
            if len(self._places) >= self._limit:
                ended = next(iter(self._waiting), None)
                if ended is None:
                    return None
                self._forget(ended)
            self._places.add(place)
            self._waiting[place] = None
        if ended is not None:
            ended.close()
        return place

    def waits(self, place: Place) -> None:
        with self._lock:
            if place in self._places:
                self._waiting.pop(place, None)
                self._waiting[place] = None

    def serves(self, place: Place) -> None:
        with self._lock:
            self._waiting.pop(place, None)

    def holds(self, place: Place, size_bytes: int) -> None:
        ended = []
        with self._lock:
            self._unread.pop(place, None)
            if size_bytes and place in self._places:
                self._unread[place] = size_bytes
                while sum(self._unread.values()) > self._unread_bytes_max:
                    first = next(iter(self._unread))
                    self._forget(first)
                    ended.append(first)
        for one in ended:
            one.close()

    def leaves(self, place: Place) -> None:
        with self._lock:
            self._forget(place)

    def _forget(self, place: Place) -> None:
        self._places.discard(place)
        self._waiting.pop(place, None)
        self._unread.pop(place, None)
