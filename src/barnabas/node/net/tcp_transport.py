"""One TCP connection on the event loop, on a plain non-blocking socket.

Sockets are driven through `add_reader`/`add_writer` instead of asyncio's transports for three
reasons: bytes land straight in the handler's buffer, a response leaves as one gathering write
of the slices it consists of, and a cold read leaves by `sendfile` (uvloop has none).
"""

import asyncio
import os
import socket
import sys
from collections import deque
from collections.abc import Sequence

from barnabas.base.addresses import normal_address
from barnabas.base.disk import IOV_MAX, Buffer, FileRange
from barnabas.base.network import Part, StreamHandler, TlsSession

JOINED_SIZE_MAX_BYTES = 4096
SENDFILE_SIZE_MAX_BYTES = 1 << 20
"""Bytes of one sendfile call, so that one cold reader does not hold the loop for long."""

BYTES_ALONE = {bytes}


class TcpTransport:
    """One TCP connection."""

    __slots__ = (
        "_closed",
        "_closing",
        "_fd",
        "_handler",
        "_is_paused",
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
        host: str = peer[0]
        self.peer_host = (normal_address(host) or host) if ":" in host else host
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
        self._is_paused = False
        """True if the handler wants nothing to be received; it may say so before `attach`."""
        self._reading = False
        self._writing = False
        self._closing = False
        self._closed = False

    def attach(self, handler: StreamHandler) -> None:
        """Give the connection its handler and begin to read, unless that was paused before."""
        if self._closed:
            handler.closed(None)
            return
        self._handler = handler
        if not self._is_paused:
            self._start_reading()

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
            elif total <= JOINED_SIZE_MAX_BYTES and set(map(type, parts)) == BYTES_ALONE:
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
        self._is_paused = True
        self._stop_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._start_reading()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def _start_reading(self) -> None:
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
        self._stop_reading()

    def _fail(self, error: OSError) -> None:
        self._finish(error)

    def _finish(self, error: OSError | None) -> None:
        if self._closed:
            return
        self._closed = True
        self._stop_reading()
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        self._queue.clear()
        self._unsent_bytes = 0
        self._sock.close()
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.closed(error)
