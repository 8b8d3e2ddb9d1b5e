"""What the machine could do: a loop that receives and writes, and one that sends a file.

No broker can be faster with one thread; a broker's share of it says how much it adds.
`python -m bench.machine_limit SIDE PORT BYTES PATH` is the other end, in its own process.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from bench.settings import ROOT, Settings

CHUNK_SIZE_BYTES = 256 * 1024
SENDFILE_SIZE_BYTES = 1024 * 1024


def machine_limits(settings: Settings) -> dict[str, float]:
    """MB/s of both loops over loopback, on the disk that the servers use."""
    settings.directory.mkdir(parents=True, exist_ok=True)
    path = settings.directory / "machine-limit"
    try:
        written = _measure("receive", settings.limit_bytes, path)
        sent = _measure("send", path.stat().st_size, path)
    finally:
        path.unlink(missing_ok=True)
    return {"limit_receive_write_mb_s": written, "limit_sendfile_mb_s": sent}


def _measure(side: str, size: int, path: Path) -> float:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [
            sys.executable,
            "-m",
            "bench.machine_limit",
            side,
            str(port),
            str(size),
            str(path),
        ]
        process = subprocess.Popen(command, cwd=ROOT)
        try:
            listener.settimeout(30)
            connection, _ = listener.accept()
            with connection:
                started = time.monotonic()
                if side == "receive":
                    _push(connection, size)
                else:
                    _discard(connection, size)
                seconds = time.monotonic() - started
            if process.wait(60):
                raise RuntimeError(f"the {side} loop ended with {process.returncode}")
        except BaseException:
            process.kill()
            process.wait()
            raise
    return size / seconds / 1e6


def _push(connection: socket.socket, size: int) -> None:
    """Send `size` bytes and wait until the other end has them all."""
    chunk = os.urandom(CHUNK_SIZE_BYTES)
    for _ in range(size // CHUNK_SIZE_BYTES):
        connection.sendall(chunk)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


def _discard(connection: socket.socket, size: int) -> None:
    buffer = bytearray(CHUNK_SIZE_BYTES)
    while size > 0:
        count = connection.recv_into(buffer)
        if not count:
            raise RuntimeError("the sending loop ended early")
        size -= count


def _receive_and_write(connection: socket.socket, path: str) -> None:
    buffer = bytearray(CHUNK_SIZE_BYTES)
    view = memoryview(buffer)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    while count := connection.recv_into(buffer):
        os.write(file, view[:count])
    os.close(file)


def _send_file(connection: socket.socket, path: str, size: int) -> None:
    file = os.open(path, os.O_RDONLY)
    position = 0
    while position < size:
        position += os.sendfile(connection.fileno(), file, position, SENDFILE_SIZE_BYTES)
    os.close(file)


if __name__ == "__main__":
    _, side, port, size, path = sys.argv
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        if side == "receive":
            _receive_and_write(connection, path)
        else:
            _send_file(connection, path, int(size))
