"""What requests that never arrive whole cost a broker: `python -m bench.half_sent` takes a minute.

Connections announce a large request, send some of it, and stay; then all are closed, and rounds
of further ones come and go. Printed is the broker's resident memory above what it had before.
"""

import argparse
import socket
import struct
import time

from bench.barnabas_server import BarnabasServer
from bench.measure import memory_megabytes
from bench.server import Server
from bench.settings import Settings
from bench.wire import produce_first

ANNOUNCED_BYTES = 50 << 20
SETTLE_SECONDS = 2.0
PIECE_BYTES = 64 * 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.half_sent")
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=24, help="of further connections")
    parser.add_argument("--in-round", type=int, default=600, help="connections of each round")
    parser.add_argument(
        "--sent", type=int, nargs="+", default=[1, 300_000], help="bytes sent of each request"
    )
    options = parser.parse_args()
    directory = Settings().directory / "half-sent"
    for sent_bytes in options.sent:
        with BarnabasServer(directory) as server:
            server.format()
            server.start()
            produce_first(server.port, "half-sent")
            _measure(server, sent_bytes, options)


def _measure(server: Server, sent_bytes: int, options: argparse.Namespace) -> None:
    before = _settled(server)

    def told(when: str) -> None:
        grown = _settled(server) - before
        print(f"{sent_bytes:8,} bytes sent: {grown:8.1f} MB {when}", flush=True)

    connections = _send(server, options.connections, sent_bytes)
    told(f"with {options.connections} connections")
    _close(connections)
    told("after they closed")
    for _ in range(options.rounds):
        _close(_send(server, options.in_round, sent_bytes))
    told(f"after {options.rounds} rounds of {options.in_round}")


def _send(server: Server, count: int, sent_bytes: int) -> list[socket.socket]:
    """Connect, announce a request, and send so much of it; the last byte by itself."""
    prefix = struct.pack(">i", ANNOUNCED_BYTES)
    piece = bytes(PIECE_BYTES)
    connections = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]
    for each in connections:
        each.sendall(prefix)
        left = sent_bytes - 1
        while left > 0:
            left -= each.send(piece[:left])
    time.sleep(SETTLE_SECONDS / 4)
    for each in connections:
        each.sendall(b"x")
    server.check_alive()
    return connections


def _close(connections: list[socket.socket]) -> None:
    for each in connections:
        each.close()


def _settled(server: Server) -> float:
    time.sleep(SETTLE_SECONDS)
    return memory_megabytes(server.pid)


if __name__ == "__main__":
    main()
