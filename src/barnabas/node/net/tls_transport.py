"""One TLS connection: a TCP connection whose bytes OpenSSL encrypts on the way.

OpenSSL never sees the socket. Ciphertext is received in large pieces into a buffer that all
connections of a thread share and handed over in memory, and what it produces leaves as whole
pieces too, so there is one system call for many records of 16 KiB. Measured, that costs no more
than an `SSLSocket`, which makes two calls for each record (`bench/tls_cost.py`), and it leaves
handshakes free to run in a thread. Ranges of files are read and encrypted piece by piece.

A connection goes through a handshake, which its handler sees nothing of, to an open state, and
ends. A step of the handshake runs in a thread (a signature takes as long as many requests do);
nothing is received during that time, so nobody else touches OpenSSL's state.
"""

import asyncio
import logging
import os
import socket
import ssl
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache

from barnabas.base.disk import Buffer, FileRange
from barnabas.base.network import Part, StreamHandler, TlsSession, TlsTerms
from barnabas.base.peer_lines import because, peer_logger
from barnabas.base.tls.words import (
    CLOSED_DURING_HANDSHAKE,
    PLAIN_TEXT_REFUSED,
    TlsError,
    reason_of,
    speaks_tls,
    what_plain_peer_speaks,
)
from barnabas.base.tls.x509 import CertificateError, subject_of
from barnabas.node.net.tcp_transport import BYTES_ALONE, JOINED_SIZE_MAX_BYTES, TcpTransport

RECEIVED_SIZE_MAX_BYTES = 256 * 1024
"""Bytes of one receive at most."""
PIECE_SIZE_BYTES = 64 * 1024
"""Bytes that OpenSSL is given at once. Its buffers grow to the largest and are kept with the
connection, so a thousand connections hold a thousand times that."""
PIECES_MAX = 4
"""Pieces that are sent with one system call. A slow reader holds no more ciphertext than that."""
ANSWERS_SIZE_MAX_BYTES = 64 * 1024
"""The limit for messages of TLS itself, such as key updates, to a peer that does not read."""
WRITTEN_SIZE_MAX_BYTES = 2 << 20
"""Bytes that one connection encrypts and writes before others have their turn."""
HANDSHAKE_THREADS = max(1, min(4, os.cpu_count() or 1))

telemetry = peer_logger(__name__)


class _OfThread(threading.local):
    """Each thread's buffers; they hold bytes only during one receive, or one write."""

    def __init__(self) -> None:
        self.ciphertext = memoryview(bytearray(RECEIVED_SIZE_MAX_BYTES))
        self.plaintext = memoryview(bytearray(PIECE_SIZE_BYTES))


_of_thread = _OfThread()


@cache
def _handshake_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(HANDSHAKE_THREADS, thread_name_prefix="tls-handshake")


class TlsTransport(TcpTransport):
    """A server's side of a connection, or a client's if it knows the server's name."""

    __slots__ = (
        "_ciphertext",
        "_incoming",
        "_is_open",
        "_outgoing",
        "_pending_step",
        "_shaken",
        "_ssl",
        "_timeout",
        "_was_heard",
        "_will_read",
    )

    def __init__(
        self,
        sock: socket.socket,
        loop: asyncio.AbstractEventLoop,
        terms: TlsTerms,
        *,
        server_name: str | None = None,
    ) -> None:
        """Begin a server's handshake at `attach`, a client's by `shake_hands`. Raises OSError."""
        super().__init__(sock, loop)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._ssl = terms.context().wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_name is None,
            server_hostname=server_name,
        )
        self._ciphertext: Buffer = b""
        """What is encrypted and has not left; it goes before the queue."""
        self._is_open = False
        self._was_heard = False
        """True once the peer has sent anything."""
        self._will_read = False
        """True if the loop was asked to go on with what has arrived."""
        self._pending_step: asyncio.Future[bool | ssl.SSLError] | None = None
        """A step of the handshake that is under way in a thread."""
        self._shaken: asyncio.Future[None] | None = None
        """A client's wait for its handshake."""
        self._timeout: asyncio.TimerHandle | None = loop.call_later(
            terms.handshake_timeout_ms / 1000, self._handshake_expired
        )

    # -- the handshake

    def attach(self, handler: StreamHandler) -> None:
        """Give the connection its handler, which gets bytes when the handshake is done."""
        if self._is_open or self._closed:
            super().attach(handler)
            return
        self._handler = handler
        self._loop.add_reader(self._fd, self._on_handshake_readable)
        self._reading = True

    async def shake_hands(self) -> None:
        """A client's handshake. Raises TlsError, and OSError for a connection that is lost."""
        self._shaken = self._loop.create_future()
        self._step()
        await self._shaken

    def _on_handshake_readable(self) -> None:
        ciphertext = _of_thread.ciphertext
        try:
            size_bytes = self._sock.recv_into(ciphertext)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._finish(error)
            return
        if not size_bytes:
            self._handshake_failed(TlsError(CLOSED_DURING_HANDSHAKE))
            return
        if not self._was_heard:
            self._was_heard = True
            if not speaks_tls(ciphertext[0]):
                self._refuse_plain_text(ciphertext[:size_bytes])
                return
        self._incoming.write(ciphertext[:size_bytes])
        self._step()

    def _refuse_plain_text(self, head: Buffer) -> None:
        self._send_last_words(PLAIN_TEXT_REFUSED)
        self._handshake_failed(TlsError(what_plain_peer_speaks(head)))

    def _step(self) -> None:
        self._stop_reading()
        self._pending_step = self._loop.run_in_executor(_handshake_threads(), _shake, self._ssl)
        self._pending_step.add_done_callback(self._stepped)

    def _stepped(self, step: "asyncio.Future[bool | ssl.SSLError]") -> None:
        self._pending_step = None
        if self._closed or step.cancelled():
            return
        outcome = step.result()
        if isinstance(outcome, ssl.SSLError):
            self._send_last_words(self._outgoing.read())  # the alert
            self._handshake_failed(TlsError(reason_of(outcome)))
            return
        if not self._send_answers():
            return
        if outcome:
            self._opened()
        else:
            self._reading = True
            self._loop.add_reader(self._fd, self._on_handshake_readable)

    def _opened(self) -> None:
        self._is_open = True
        self._forget_timeout()
        certificate = self._ssl.getpeercert(binary_form=True)
        cipher = self._ssl.cipher()
        try:
            subject = None if certificate is None else subject_of(certificate)
        except CertificateError as error:
            self._handshake_failed(TlsError(f"its certificate cannot be read: {error}"))
            return
        self.tls = TlsSession(self._ssl.version() or "", cipher[0] if cipher else "", subject)
        if self._shaken is not None:
            if not self._shaken.done():
                self._shaken.set_result(None)
        elif not self._is_paused:
            self._start_reading()

    def _handshake_failed(self, error: TlsError) -> None:
        """End it, with a line in the log; a client's caller has the error."""
        if self._shaken is None:
            # Probes of a port say nothing; they are no failure.
            level = logging.WARNING if self._was_heard else logging.DEBUG
            telemetry.log(
                *(level, "no TLS with %s:%d: %s", self.peer_host, self.peer_port, error),
                extra=because(error),
            )
        self._finish(error)

    def _handshake_expired(self) -> None:
        self._timeout = None
        self._handshake_failed(TlsError("it did not finish the TLS handshake in time"))

    def _forget_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    # -- receiving

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._is_open:  # the handshake goes on all the same
            self._stop_reading()

    def _start_reading(self) -> None:
        if not self._is_open:
            return  # the handshake reads, or waits for its own next step
        super()._start_reading()
        if self._reading and not self._will_read and self._has_arrived():
            self._will_read = True
            self._loop.call_soon(self._read_on)

    def _has_arrived(self) -> bool:
        """Return whether something that was received has not been handed on."""
        return bool(self._incoming.pending or self._ssl.pending())

    def _read_on(self) -> None:
        self._will_read = False
        self._decrypt()

    def _on_readable(self) -> None:
        ciphertext = _of_thread.ciphertext
        try:
            size_bytes = self._sock.recv_into(ciphertext)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._finish(error)
            return
        if not size_bytes:
            self._finish(None)
            return
        for position in range(0, size_bytes, PIECE_SIZE_BYTES):
            end = min(position + PIECE_SIZE_BYTES, size_bytes)
            self._incoming.write(ciphertext[position:end])
            if self._reading:
                self._decrypt()
            if self._closed:
                return

    def _decrypt(self) -> None:
        """Hand on what has arrived, until nothing is left or the handler wants no more."""
        handler = self._handler
        has_more = True
        while has_more and self._reading and handler is not None:
            buffer = handler.get_buffer()
            size_bytes = 0
            ended = False
            failure: ssl.SSLError | None = None
            try:
                while size_bytes < len(buffer):
                    rest = buffer[size_bytes:]
                    received: int = self._ssl.read(len(rest), rest)  # type: ignore[assignment]  # a number, into a buffer
                    if not received:
                        ended = True  # its close_notify
                        break
                    size_bytes += received
                    if not self._has_arrived():
                        has_more = False
                        break
            except ssl.SSLWantReadError:
                has_more = False
            except ssl.SSLError as error:
                failure = error
            if size_bytes:
                handler.received(size_bytes)
            if failure is not None:
                self._broken(failure)
            elif ended:
                self._finish(None)
            handler = self._handler
        if self._outgoing.pending and not self._closed:
            self._answer()

    def _broken(self, error: ssl.SSLError) -> None:
        """The peer sent what is not TLS, or an alert."""
        if self._closed:
            return
        reason = reason_of(error)
        if self._shaken is None:
            telemetry.warning("TLS with %s:%d ends: %s", self.peer_host, self.peer_port, reason)
        if self._outgoing.pending and not self._ciphertext:
            self._send_last_words(self._outgoing.read())
        self._finish(TlsError(reason))

    def _answer(self) -> None:
        """Send what TLS itself has to say, which nobody asked for."""
        if len(self._ciphertext) > PIECES_MAX * PIECE_SIZE_BYTES + ANSWERS_SIZE_MAX_BYTES:
            self._finish(TlsError("it does not read the answers of TLS"))
            return
        self._send_answers()

    def _send_answers(self) -> bool:
        """Send what OpenSSL has produced, behind what waits to leave; False: it has ended."""
        try:
            if self._outgoing.pending:
                produced = self._outgoing.read()
                self._ciphertext = (
                    b"".join((self._ciphertext, produced)) if self._ciphertext else produced
                )
            self._write_queue()
        except OSError as error:
            self._finish(error)
            return False
        self._write_later()
        return True

    # -- sending

    def unsent_bytes(self) -> int:
        return self._unsent_bytes + len(self._ciphertext)

    def send(self, parts: Sequence[Part]) -> None:
        if self._closed or self._closing:
            return
        self._queue.extend(parts)
        self._unsent_bytes += sum(map(len, parts))
        if self._writing:
            return
        try:
            self._write_queue()
        except OSError as error:
            self._fail(error)
            return
        self._write_later()

    def _write_later(self) -> None:
        if (self._ciphertext or self._queue) and not self._writing and not self._closed:
            self._writing = True
            self._loop.add_writer(self._fd, self._on_writable)

    def _on_writable(self) -> None:
        try:
            self._write_queue()
        except OSError as error:
            self._fail(error)
            return
        if self._ciphertext or self._queue:
            return
        self._loop.remove_writer(self._fd)
        self._writing = False
        if self._closing:
            self._finish(None)
        elif self._handler is not None and self._is_open:
            self._handler.drained()

    def _write_queue(self) -> None:
        """Encrypt and write until the queue is empty or the peer takes no more."""
        left = WRITTEN_SIZE_MAX_BYTES
        while True:
            if self._ciphertext:
                try:
                    sent = self._sock.send(self._ciphertext)
                except (BlockingIOError, InterruptedError):
                    return
                if sent < len(self._ciphertext):
                    self._ciphertext = memoryview(self._ciphertext)[sent:]
                    return
                self._ciphertext = b""
            if not self._queue or left <= 0:
                return
            left -= self._encrypt()

    def _encrypt(self) -> int:
        """Send some of the queue, or keep what of that does not leave; how many bytes it was."""
        pieces: list[bytes] = []
        total = 0
        while self._queue and len(pieces) < PIECES_MAX:
            plaintext = self._next_plaintext()
            if plaintext:
                self._ssl.write(plaintext)
                total += len(plaintext)
                pieces.append(self._outgoing.read())
        if len(pieces) == 1:
            self._ciphertext = pieces[0]  # the caller sends it
        elif pieces:
            try:
                sent = self._sock.sendmsg(pieces)
            except (BlockingIOError, InterruptedError):
                sent = 0
            if sent < sum(map(len, pieces)):
                self._ciphertext = memoryview(b"".join(pieces))[sent:]
        return total

    def _next_plaintext(self) -> Buffer:
        """Take from the queue what is encrypted at once; it holds until the next call."""
        queue = self._queue
        if self._unsent_bytes <= JOINED_SIZE_MAX_BYTES and set(map(type, queue)) == BYTES_ALONE:
            whole = queue[0] if len(queue) == 1 else b"".join(queue)  # type: ignore[arg-type]  # all bytes
            queue.clear()
            self._unsent_bytes = 0
            return whole  # type: ignore[return-value]  # bytes
        head = queue[0]
        if len(head) >= PIECE_SIZE_BYTES and not isinstance(head, FileRange):
            self._drop_sent(PIECE_SIZE_BYTES)
            return memoryview(head)[:PIECE_SIZE_BYTES]
        plaintext = _of_thread.plaintext
        filled = 0
        for part in queue:
            room = plaintext[filled : filled + len(part)]
            if isinstance(part, FileRange):
                size_bytes = _read(part, room)
                if not size_bytes and len(part):
                    raise ConnectionAbortedError("the file ended before its promised range")
            else:
                size_bytes = len(room)
                room[:] = part if size_bytes == len(part) else memoryview(part)[:size_bytes]
            filled += size_bytes
            if size_bytes < len(part):
                break
        self._drop_sent(filled)
        return plaintext[:filled]

    # -- the end

    def close_when_sent(self) -> None:
        if not self._queue and not self._ciphertext:
            self._finish(None)
            return
        self._closing = True
        self._stop_reading()

    def _send_last_words(self, words: bytes) -> None:
        """Send a little without waiting: the connection ends, whether it leaves or not."""
        with suppress(OSError):
            self._sock.send(words)

    def _finish(self, error: OSError | None) -> None:
        if self._closed:
            return
        self._forget_timeout()
        if self._pending_step is not None:
            self._pending_step.cancel()  # its outcome is for nobody, and the loop may end first
        if self._is_open and error is None and not self._ciphertext and not self._queue:
            with suppress(OSError, ValueError):  # it does not wait for the other's close_notify
                self._ssl.unwrap()
            self._send_last_words(self._outgoing.read())
        self._ciphertext = b""
        super()._finish(error)
        if self._shaken is not None and not self._shaken.done():
            self._shaken.set_exception(error or TlsError(CLOSED_DURING_HANDSHAKE))


def _read(part: FileRange, room: memoryview) -> int:
    """Fill `room` from the start of a range; how many bytes that were."""
    source = part.file.fileno()
    if source >= 0:
        return os.preadv(source, [room], part.position)
    piece = part.file.pread(len(room), part.position)
    room[: len(piece)] = piece
    return len(piece)


def _shake(tls: ssl.SSLObject) -> bool | ssl.SSLError:
    """One step, in a thread: whether the handshake is done, or why there will be none."""
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError as error:
        return error.with_traceback(None)
    return True
