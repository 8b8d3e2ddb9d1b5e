"""The machine's network: TCP on the event loop, with TLS where a listener or a caller asks for it.

`tcp_transport` and `tls_transport` handle a connection's bytes.
"""

import asyncio
import socket
import sys
from collections.abc import Callable

from barnabas.base.descriptors import RETRY_S, DescriptorReserve
from barnabas.base.network import (
    PLAIN_LISTENER,
    SYSTEM_OPTIONS,
    Listener,
    ListenerOptions,
    SocketOptions,
    StreamHandler,
    TlsTerms,
    Transport,
)
from barnabas.base.peer_lines import peer_logger
from barnabas.node.net.tcp_transport import TcpTransport
from barnabas.node.net.tls_transport import TlsTransport

ACCEPTS_PER_WAKEUP_MAX = 64
BACKLOG = 1024
BUFFER_BYTES_COUNTED = 2 if sys.platform == "linux" else 1
"""Linux counts its book-keeping in: it says twice the size that a buffer was given."""

telemetry = peer_logger(__name__)


class TcpListener:
    """A listening socket."""

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        factory: Callable[[Transport], StreamHandler],
        options: ListenerOptions,
        reserve: DescriptorReserve,
    ) -> None:
        self._sock = sock
        self._loop = loop
        self._factory = factory
        self._tls = options.tls
        self._is_for_nodes = options.is_for_nodes
        self._make_room = options.make_room
        self._reserve = reserve
        self._accepting = False
        self._closed = False
        self._retry: asyncio.TimerHandle | None = None
        """Set while it accepts again later: descriptors are short, or accepting has failed."""
        address = sock.getsockname()
        self.host: str = address[0]
        self.port: int = address[1]

    def start(self) -> None:
        if not self._accepting and not self._closed:
            self._forget_retry()
            self._accepting = True
            self._loop.add_reader(self._sock.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        for _ in range(ACCEPTS_PER_WAKEUP_MAX):
            if not self._accepting:
                return  # the connection just accepted was the last one allowed
            if self._reserve.is_short(is_own=self._is_for_nodes):
                if self._make_room is not None:
                    self._make_room()
                self._accept_later()
                return
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                telemetry.error("accepting on %s:%d failed: %s", self.host, self.port, error)
                self._accept_later()
                return
            try:
                transport = self._transport(sock)
            except OSError:
                sock.close()
                continue
            transport.attach(self._factory(transport))

    def _accept_later(self) -> None:
        self.pause()
        self._retry = self._loop.call_later(RETRY_S, self.start)

    def _transport(self, sock: socket.socket) -> TcpTransport:
        if self._tls is None:
            return TcpTransport(sock, self._loop)
        return TlsTransport(sock, self._loop, self._tls)

    def pause(self) -> None:
        self._forget_retry()
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._sock.fileno())

    def _forget_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.pause()
        self._sock.close()


class TcpNetwork:
    """The machine's network."""

    __slots__ = ("_reserve",)

    def __init__(self, reserve: DescriptorReserve | None = None) -> None:
        """`reserve`: the descriptors that connections to listeners leave free."""
        self._reserve = DescriptorReserve() if reserve is None else reserve

    def listen(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: ListenerOptions = PLAIN_LISTENER,
    ) -> Listener:
        backlog = options.socket.backlog
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Before `listen`: the window's scale is agreed on while a connection is set up.
            _set_buffers(sock, options.socket)
            sock.bind((host, port))
            sock.listen(BACKLOG if backlog is None else backlog)
            sock.setblocking(False)
            _tell_of_caps(sock, options.socket)
        except OSError:
            sock.close()
            raise
        loop = asyncio.get_running_loop()
        return TcpListener(sock, loop, factory, options, self._reserve)

    async def connect(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: SocketOptions = SYSTEM_OPTIONS,
        tls: TlsTerms | None = None,
    ) -> Transport:
        loop = asyncio.get_running_loop()
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failure: OSError | None = None
        try:
            for family, kind, protocol, _, address in infos:
                sock = socket.socket(family, kind, protocol)
                sock.setblocking(False)
                try:
                    _set_buffers(sock, options)
                    await loop.sock_connect(sock, address)
                except OSError as error:
                    sock.close()
                    failure = error
                    continue
                except asyncio.CancelledError:
                    sock.close()
                    raise
                if tls is not None:
                    transport = await _encrypted(sock, loop, tls, host)
                else:
                    try:
                        transport = TcpTransport(sock, loop)
                    except OSError as error:  # the peer has reset the connection at once
                        sock.close()
                        failure = error
                        continue
                transport.attach(factory(transport))
                return transport
            raise failure or OSError(f"{host} has no address")
        finally:
            failure = None  # its traceback holds this frame: together they would be a cycle


async def _encrypted(
    sock: socket.socket, loop: asyncio.AbstractEventLoop, tls: TlsTerms, host: str
) -> TcpTransport:
    """The connection once its handshake is done. Raises TlsError; then the socket is closed."""
    try:
        transport = TlsTransport(sock, loop, tls, server_name=host)
    except OSError:
        sock.close()
        raise
    try:
        await transport.shake_hands()
    except BaseException:
        transport.close()
        raise
    return transport


def _set_buffers(sock: socket.socket, options: SocketOptions) -> None:
    """Fix the sizes that are asked for, as far as the system allows."""
    for option, size_bytes, _ in _buffers(options):
        sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)


def _tell_of_caps(sock: socket.socket, options: SocketOptions) -> None:
    """Warn of buffers that the system made smaller than they should be."""
    for option, size_bytes, cap in _buffers(options):
        granted = sock.getsockopt(socket.SOL_SOCKET, option) // BUFFER_BYTES_COUNTED
        if granted < size_bytes:
            host, port = sock.getsockname()[:2]
            message = "%s:%d: of %d bytes of buffer the system grants %d (%s)"
            telemetry.warning(message, host, port, size_bytes, granted, cap)


def _buffers(options: SocketOptions) -> list[tuple[int, int, str]]:
    """The buffer options to set: the option, its size, and the setting that caps it on Linux."""
    wanted = (
        (socket.SO_RCVBUF, options.receive_buffer_bytes, "net.core.rmem_max"),
        (socket.SO_SNDBUF, options.send_buffer_bytes, "net.core.wmem_max"),
    )
    return [(option, size, cap) for option, size, cap in wanted if size is not None]
