"""What TLS costs the side of a broker: `python -m bench.tls_cost`.

OpenSSL over the socket (`SSLSocket`) beside OpenSSL in memory (`MemoryBIO`), at several sizes of a
write or a receive, and our transport sending ranges of a file. The other end is a process of its
own. Prints processor seconds per GB (10^9) and MB/s; the choice is explained in ARCHITECTURE.md.
"""

import asyncio
import os
import select
import socket
import ssl
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from barnabas.base.disk import FileRange
from barnabas.base.local_disk import LocalDisk
from barnabas.base.network import ListenerOptions, StreamHandler, Transport
from barnabas.node.net.tcp import TcpNetwork
from bench.certificate import make_certificate

TOTAL_BYTES = 1 << 30
SIZES = (16 << 10, 64 << 10, 256 << 10, 1 << 20)
RANGE_BYTES = 1 << 20
HOST = "127.0.0.1"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        certificate = Path(directory) / "certificate.pem"
        make_certificate(certificate)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(certificate)
        for size in SIZES:
            _measure(f"SSLSocket write {size >> 10} KiB", server, _discard, _write_socket(size))
            _measure(f"MemoryBIO write {size >> 10} KiB", server, _discard, _write_memory(size))
        _measure("SSLSocket read", server, _push, _read_socket)
        for size in SIZES:
            _measure(f"MemoryBIO read {size >> 10} KiB", server, _push, _read_memory(size))
        path = Path(directory) / "file"
        path.write_bytes(os.urandom(RANGE_BYTES))
        for name, context in (("plain", None), ("TLS", server)):
            asyncio.run(_send_ranges(f"transport, {name}, ranges", context, path))


Side = Callable[[socket.socket, ssl.SSLContext], None]


def _measure(name: str, context: ssl.SSLContext, far: Callable[[int], None], side: Side) -> None:
    with socket.create_server((HOST, 0)) as listener:
        child = _fork(far, listener.getsockname()[1])
        sock, _ = listener.accept()
        with sock:
            started, cpu = time.monotonic(), time.process_time()
            side(sock, context)
            _print(name, started, cpu)
        os.waitpid(child, 0)


def _fork(far: Callable[[int], None], port: int) -> int:
    child = os.fork()
    if child == 0:
        try:
            far(port)
        finally:
            os._exit(0)
    return child


def _print(name: str, started: float, cpu: float) -> None:
    seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu
    gigabytes = TOTAL_BYTES / 1e9
    rate = gigabytes * 1000 / seconds
    print(f"{name:32} {cpu_seconds / gigabytes:8.3f} s/GB {rate:8.0f} MB/s", flush=True)


# -- the other end


def _client(port: int) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection((HOST, port)))


def _push(port: int) -> None:
    with _client(port) as sock:
        chunk = bytes(1 << 20)
        for _ in range(TOTAL_BYTES // len(chunk)):
            sock.sendall(chunk)
        with suppress(OSError):  # the other end closes once it has read all
            sock.recv(1)


def _discard(port: int) -> None:
    with _client(port) as sock:
        _receive_all(sock)


def _discard_plain(port: int) -> None:
    with socket.create_connection((HOST, port)) as sock:
        _receive_all(sock)


def _receive_all(sock: socket.socket) -> None:
    buffer = bytearray(1 << 18)
    left = TOTAL_BYTES
    while left > 0:
        left -= sock.recv_into(buffer) or left


# -- the measured sides


def _write_socket(size: int) -> Side:
    def write(sock: socket.socket, context: ssl.SSLContext) -> None:
        tls = context.wrap_socket(sock, server_side=True)
        tls.setblocking(False)
        chunk = bytes(size)
        for _ in range(TOTAL_BYTES // size):
            while True:
                try:
                    tls.send(chunk)
                    break
                except ssl.SSLWantWriteError:
                    select.select([], [tls], [])
        tls.close()

    return write


def _write_memory(size: int) -> Side:
    def write(sock: socket.socket, context: ssl.SSLContext) -> None:
        tls, _, outgoing = _in_memory(sock, context)
        chunk = bytes(size)
        for _ in range(TOTAL_BYTES // size):
            tls.write(chunk)
            left = memoryview(outgoing.read())
            while left:
                try:
                    left = left[sock.send(left) :]
                except BlockingIOError:
                    select.select([], [sock], [])

    return write


def _read_socket(sock: socket.socket, context: ssl.SSLContext) -> None:
    tls = context.wrap_socket(sock, server_side=True)
    tls.setblocking(False)
    buffer = memoryview(bytearray(1 << 18))
    left = TOTAL_BYTES
    while left > 0:
        try:
            left -= tls.recv_into(buffer)
        except ssl.SSLWantReadError:
            select.select([tls], [], [])
    tls.close()


def _read_memory(size: int) -> Side:
    def read(sock: socket.socket, context: ssl.SSLContext) -> None:
        tls, incoming, _ = _in_memory(sock, context)
        ciphertext = memoryview(bytearray(size))
        buffer = memoryview(bytearray(1 << 18))
        left = TOTAL_BYTES
        while left > 0:
            select.select([sock], [], [])
            incoming.write(ciphertext[: sock.recv_into(ciphertext)])
            try:
                while left > 0:
                    left -= int(tls.read(len(buffer), buffer))
            except ssl.SSLWantReadError:
                pass

    return read


def _in_memory(
    sock: socket.socket, context: ssl.SSLContext
) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(1 << 16))
    sock.sendall(outgoing.read())
    sock.setblocking(False)
    return tls, incoming, outgoing


# -- our transport


class _Terms:
    handshake_timeout_ms = 30_000

    def __init__(self, made: ssl.SSLContext) -> None:
        self.made = made

    def context(self) -> ssl.SSLContext:
        return self.made


class _Sender:
    """Sends a range whenever the one before has left."""

    def __init__(self, transport: Transport, part: FileRange, done: asyncio.Event) -> None:
        self._transport = transport
        self._part = part
        self._left = TOTAL_BYTES // len(part)
        self._done = done
        self._buffer = memoryview(bytearray(16))

    def begin(self) -> None:
        while self._left and not self._transport.unsent_bytes():
            self._left -= 1
            self._transport.send((b"head", self._part))
        if not self._left and not self._transport.unsent_bytes():
            self._done.set()

    def get_buffer(self) -> memoryview:
        return self._buffer

    def received(self, size_bytes: int) -> None:
        """Nothing is expected."""

    def drained(self) -> None:
        self.begin()

    def closed(self, error: OSError | None) -> None:
        self._done.set()


async def _send_ranges(name: str, context: ssl.SSLContext | None, path: Path) -> None:
    disk = LocalDisk()
    file = disk.open(str(path))
    done, accepted = asyncio.Event(), asyncio.Event()
    senders: list[_Sender] = []

    def accept(transport: Transport) -> StreamHandler:
        senders.append(_Sender(transport, FileRange(file, 0, RANGE_BYTES), done))
        accepted.set()
        return senders[0]

    tls = None if context is None else _Terms(context)
    listener = TcpNetwork().listen(HOST, 0, accept, ListenerOptions("BENCH", tls=tls))
    listener.start()
    child = _fork(_discard_plain if tls is None else _discard, listener.port)
    await accepted.wait()
    transport = senders[0]._transport
    await asyncio.sleep(0.5)  # for the handshake
    started, cpu = time.monotonic(), time.process_time()
    senders[0].begin()
    await done.wait()
    _print(name, started, cpu)
    listener.close()
    transport.close()
    await asyncio.to_thread(os.waitpid, child, 0)
    file.close()
    disk.close()


if __name__ == "__main__":
    main()
