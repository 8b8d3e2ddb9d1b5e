"""Addresses on which HTTP servers listen."""

import socket
from dataclasses import dataclass, replace

from barnabas.base.errors import ShownError


class CannotListenError(ShownError):
    """An address cannot be bound. The message names it; `why` is the rest of it."""

    hint = "choose another address with --listeners"

    def __init__(self, listener: "ListenAddress", why: str) -> None:
        super().__init__(f"cannot listen at {listener}: {why}")
        self.why = why


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address to listen on. Port 0 takes a free one."""

    host: str
    port: int
    is_tls: bool = False
    name: str = ""
    """Its name in a configuration."""

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "https" if self.is_tls else "http"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class BoundListener:
    """A listener bound to its address; `WebServer` begins to listen there."""

    __slots__ = ("listener", "socket")

    def __init__(self, listener: ListenAddress) -> None:
        """Bind it. Raises CannotListenError."""
        self.socket = _bound(listener)
        self.listener = replace(listener, port=int(self.socket.getsockname()[1]))

    def close(self) -> None:
        """Free the address."""
        self.socket.close()


def bind_all(listeners: tuple[ListenAddress, ...] | list[ListenAddress]) -> list[BoundListener]:
    """Bind all of them, or none. Raises CannotListenError."""
    bound: list[BoundListener] = []
    try:
        for listener in listeners:
            bound.append(BoundListener(listener))  # noqa: PERF401  those before are closed
    except BaseException:
        for one in bound:
            one.close()
        raise
    return bound


def _bound(listener: ListenAddress) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol: event loops send small answers at once where they see that it is TCP.
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
            opened.setblocking(False)
        except BaseException:
            opened.close()
            raise
    except (OSError, UnicodeError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise CannotListenError(listener, why) from error
    return opened
