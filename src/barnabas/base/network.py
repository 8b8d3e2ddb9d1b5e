"""Byte streams as an argument: the one interface through which the platform touches a network.

A `Transport` is one connection's sending side and its controls; a `StreamHandler` is what the
platform puts behind it. Bytes are received into a buffer that the handler offers, so that a
frame can land where it will be used. Production uses `net.tcp`; the simulator passes a network
that delays, drops and partitions.
"""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.base.disk import Buffer, FileRange

Part = Buffer | FileRange
"""One piece of an outgoing message: bytes in memory, or a range of a file."""


@dataclass(frozen=True, slots=True)
class TlsSession:
    """The result of a TLS handshake."""

    version: str
    """`TLSv1.3` or `TLSv1.2`."""
    cipher: str
    peer_subject: str | None = None
    """The distinguished name of the peer's certificate in the notation of RFC 2253, which Java
    uses; None where it showed none."""


class TlsTerms(Protocol):
    """One side's terms of a handshake: its certificate, and the authorities that it trusts."""

    handshake_timeout_ms: int
    """The time limit for the handshake."""

    def context(self) -> ssl.SSLContext:
        """For the next connection; those that stand keep theirs. Raises OSError."""


class Transport(Protocol):
    """One established connection.

    Where TLS is spoken, the handshake comes before the first bytes that the handler gets.
    """

    peer_host: str
    peer_port: int

    @property
    def tls(self) -> TlsSession | None:
        """Set when the handshake is done; None on a connection in plain text."""

    def send(self, parts: Sequence[Part]) -> None:
        """Queue `parts` in order and write what the peer takes at once. Never blocks.

        The parts must not change until they have left. Ignored after `close`.
        """

    def unsent_bytes(self) -> int:
        """Bytes queued that the peer has not taken."""

    def pause_reading(self) -> None:
        """Stop receiving, so that the peer feels back-pressure. It holds before `attach` too."""

    def resume_reading(self) -> None:
        """Receive again."""

    def close(self) -> None:
        """Drop what is queued and close; `StreamHandler.closed` follows once."""

    def close_when_sent(self) -> None:
        """Close once all that is queued has left."""


class StreamHandler(Protocol):
    """The receiver of a connection's bytes."""

    def get_buffer(self) -> memoryview:
        """The buffer for the next bytes; it is never empty."""

    def received(self, size_bytes: int) -> None:
        """`size_bytes` bytes have landed in the buffer last offered."""

    def drained(self) -> None:
        """All queued bytes have left, after some had to wait."""

    def closed(self, error: OSError | None) -> None:
        """The connection is gone; `error` is None for an orderly end."""


@dataclass(frozen=True, slots=True)
class SocketOptions:
    """The options of a socket; None leaves one to the system, or to the `Network`."""

    receive_buffer_bytes: int | None = None
    """SO_RCVBUF. Without it the system sizes the buffer as the connection needs."""
    send_buffer_bytes: int | None = None
    """SO_SNDBUF, likewise."""
    backlog: int | None = None
    """Connections that may wait at a listening socket."""


SYSTEM_OPTIONS = SocketOptions()


@dataclass(frozen=True, slots=True)
class ListenerOptions:
    """The options of one listener and its connections."""

    name: str = ""
    security_protocol: str = "PLAINTEXT"
    frame_size_max_bytes: int = 100 << 20
    """`socket.request.max.bytes`."""
    socket: SocketOptions = SYSTEM_OPTIONS
    """Connections that are accepted have the same buffers as the listening socket."""
    tls: TlsTerms | None = None
    """None: connections are in plain text. The simulated network has no TLS."""
    is_for_nodes: bool = False
    """True if only nodes of the cluster connect here, and not its clients."""
    make_room: Callable[[], None] | None = None
    """Called while connections wait to be accepted because file descriptors are short."""
    name_of: Callable[[str], str] = str
    """The name of a client, by its certificate's subject (`ssl.principal.mapping.rules`)."""


PLAIN_LISTENER = ListenerOptions()


class Listener(Protocol):
    """A bound address that accepts connections."""

    host: str
    port: int

    def start(self) -> None:
        """Begin to accept, or go on after `pause`."""

    def pause(self) -> None:
        """Leave new connections waiting."""

    def close(self) -> None:
        """Stop accepting; connections that exist go on."""


class Network(Protocol):
    """Listens and connects."""

    def listen(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: ListenerOptions = PLAIN_LISTENER,
    ) -> Listener:
        """Bind `host:port` (port 0: any free one) without accepting yet. Raises OSError."""

    def connect(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: SocketOptions = SYSTEM_OPTIONS,
        tls: TlsTerms | None = None,
    ) -> Awaitable[Transport]:
        """Open a connection, encrypted if there are `tls` terms. Raises OSError."""
