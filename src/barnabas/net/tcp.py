"""TCP on the event loop, with plain non-blocking sockets.

Sockets are driven through `add_reader`/`add_writer` instead of asyncio's transports for three
reasons: bytes land straight in the handler's buffer, a response leaves as one gathering write
of the slices it consists of, and a cold read leaves by `sendfile` (uvloop has none).
"""

import asyncio
import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence

from barnabas.base.disk import IOV_MAX, Buffer, FileRange
from barnabas.base.network import (
    PLAIN_LISTENER,
    SYSTEM_OPTIONS,
    Listener,
    ListenerOptions,
    Part,
    SocketOptions,
    StreamHandler,
    TlsSession,
    Transport,
)

JOINED_SIZE_MAX_BYTES = 4096
SENDFILE_SIZE_MAX_BYTES = 1 << 20
"""Bytes of one sendfile call, so that one cold reader does not hold the loop for long."""
ACCEPTS_PER_WAKEUP_MAX = 64
BACKLOG = 1024
BUFFER_BYTES_COUNTED = 2 if sys.platform == "linux" else 1
"""Linux counts its book-keeping in: it says twice the size that a buffer was given."""
ACCEPT_RETRY_S = 0.5
"""Pause after the process ran out of file descriptors, so that the loop does not spin."""

_BYTES_ALONE = {bytes}

telemetry = logging.getLogger(__name__)


class TcpTransport:
    """One TCP connection."""

    __slots__ = (
        "_closed",
        "_closing",
        "_fd",
        "_handler",
        "_loop",
        "_queue",
        "_reading",
        "_sock",
        "_unsent_bytes",
        "_writing",
        "peer_host",
        "peer_port",
        "tls",
    )

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = sock.getpeername()
        self.peer_host: str = peer[0]
        self.peer_port: int = peer[1]
        self.tls: TlsSession | None = None
        self._sock = sock
        self._fd = sock.fileno()
        self._loop = loop
        self._handler: StreamHandler | None = None
        """None before `attach`, and from the close on: it knows its transport, so that to keep
        it would be a cycle, which lives until a garbage collection."""
        self._queue: deque[Part] = deque()
        self._unsent_bytes = 0
        self._reading = False
        self._writing = False
        self._closing = False
        self._closed = False

    def attach(self, handler: StreamHandler) -> None:
        """Give the connection its handler and begin to read."""
        if self._closed:
            handler.closed(None)
            return
        self._handler = handler
        self.resume_reading()

    def unsent_bytes(self) -> int:
        return self._unsent_bytes

    def send(self, parts: Sequence[Part]) -> None:
        if self._closed or self._closing:
            return
        if not self._queue:
            try:
                if self._send_at_once(parts):
                    return
            except OSError as error:
                self._fail(error)
                return
        else:
            self._queue.extend(parts)
            self._unsent_bytes += sum(map(len, parts))
        if not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self._on_writable)

    def _send_at_once(self, parts: Sequence[Part]) -> bool:
        """Write `parts` past the empty queue; True when all have left, else queue the rest."""
        sent = 0
        total = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        try:
            if len(parts) == 1 and type(parts[0]) is bytes:
                sent = self._sock.send(parts[0])
            elif total <= JOINED_SIZE_MAX_BYTES and set(map(type, parts)) == _BYTES_ALONE:
                # Small answers, mostly one. To copy them costs less than a vector does.
                sent = self._sock.send(b"".join(parts))  # type: ignore[arg-type]  # all bytes
            elif len(parts) <= IOV_MAX and FileRange not in set(map(type, parts)):
                sent = self._sock.sendmsg(parts)  # type: ignore[arg-type]  # no FileRange here
            else:
                self._queue.extend(parts)
                self._unsent_bytes = total
                self._write_queue()
                return not self._queue
        except (BlockingIOError, InterruptedError):
            pass
        if sent == total:
            return True
        self._queue.extend(parts)
        self._unsent_bytes = total
        self._drop_sent(sent)
        return False

    def _on_writable(self) -> None:
        try:
            self._write_queue()
        except OSError as error:
            self._fail(error)
            return
        if self._queue:
            return
        self._loop.remove_writer(self._fd)
        self._writing = False
        if self._closing:
            self._finish(None)
        elif self._handler is not None:
            self._handler.drained()

    def _write_queue(self) -> None:
        """Write until the queue is empty or the peer takes no more."""
        queue = self._queue
        while queue:
            head = queue[0]
            try:
                if type(head) is FileRange:
                    sent = self._send_file(head)
                else:
                    sent = self._sock.sendmsg(self._leading_buffers())
            except (BlockingIOError, InterruptedError):
                return
            self._drop_sent(sent)

    def _leading_buffers(self) -> list[Buffer]:
        buffers: list[Buffer] = []
        for part in self._queue:
            if isinstance(part, FileRange) or len(buffers) == IOV_MAX:
                break
            buffers.append(part)
        return buffers

    def _send_file(self, part: FileRange) -> int:
        source = part.file.fileno()
        if source < 0:
            return self._sock.send(part.read())
        size_bytes = min(part.size_bytes, SENDFILE_SIZE_MAX_BYTES)
        if sys.platform == "linux":
            sent = os.sendfile(self._fd, source, part.position, size_bytes)
        else:
            sent = self._sock.send(part.file.pread(size_bytes, part.position))
        if sent == 0 and part.size_bytes:
            raise ConnectionAbortedError("the file ended before the range that was promised")
        return sent

    def _drop_sent(self, sent: int) -> None:
        """Forget `sent` bytes at the head of the queue."""
        queue = self._queue
        self._unsent_bytes -= sent
        while queue:
            head = queue[0]
            size_bytes = len(head)
            if sent < size_bytes:
                if sent:
                    queue[0] = (
                        FileRange(head.file, head.position + sent, size_bytes - sent)
                        if isinstance(head, FileRange)
                        else memoryview(head)[sent:]
                    )
                return
            sent -= size_bytes
            queue.popleft()

    def _on_readable(self) -> None:
        handler = self._handler
        if handler is None:
            return
        try:
            size_bytes = self._sock.recv_into(handler.get_buffer())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._fail(error)
            return
        if size_bytes:
            handler.received(size_bytes)
        else:
            self._finish(None)

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if not self._reading and not self._closed and not self._closing:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        self._finish(None)

    def close_when_sent(self) -> None:
        if not self._queue:
            self._finish(None)
            return
        self._closing = True
        self.pause_reading()

    def _fail(self, error: OSError) -> None:
        self._finish(error)

    def _finish(self, error: OSError | None) -> None:
        if self._closed:
            return
        self._closed = True
        self.pause_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._queue.clear()
        self._unsent_bytes = 0
        self._sock.close()
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.closed(error)


class TcpListener:
    """A listening socket."""

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        factory: Callable[[Transport], StreamHandler],
    ) -> None:
        self._sock = sock
        self._loop = loop
        self._factory = factory
        self._accepting = False
        self._closed = False
        self._retry: asyncio.TimerHandle | None = None
        """Set while it accepts again later, because accepting has failed."""
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
            try:
                sock, _ = self._sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                telemetry.error("accepting on %s:%d failed: %s", self.host, self.port, error)
                self.pause()
                self._retry = self._loop.call_later(ACCEPT_RETRY_S, self.start)
                return
            try:
                transport = TcpTransport(sock, self._loop)
            except OSError:
                sock.close()
                continue
            transport.attach(self._factory(transport))

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

    __slots__ = ()

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
        return TcpListener(sock, asyncio.get_running_loop(), factory)

    async def connect(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        options: SocketOptions = SYSTEM_OPTIONS,
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
                transport = TcpTransport(sock, loop)
                transport.attach(factory(transport))
                return transport
            raise failure or OSError(f"{host} has no address")
        finally:
            failure = None  # its traceback holds this frame: together they would be a cycle


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
    """What is to be set: the option, its size, and what caps it on Linux."""
    wanted = (
        (socket.SO_RCVBUF, options.receive_buffer_bytes, "net.core.rmem_max"),
        (socket.SO_SNDBUF, options.send_buffer_bytes, "net.core.wmem_max"),
    )
    return [(option, size, cap) for option, size, cap in wanted if size is not None]
