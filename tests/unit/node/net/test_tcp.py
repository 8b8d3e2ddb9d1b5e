"""TCP connections that end at the moment they are made."""

import asyncio
import socket
from collections.abc import Callable
from struct import pack
from typing import Any

import pytest

from barnabas.base.network import StreamHandler, Transport
from barnabas.node.net.tcp import TcpNetwork

HOST = "127.0.0.1"
LINGER_OFF = pack("ii", 1, 0)
"""A socket with this is reset when it is closed."""


def unreachable(_: Transport) -> StreamHandler:
    raise AssertionError("no connection came to stand")


async def test_a_connection_that_is_reset_at_once_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The peer has accepted and gone before anyone could ask who it is."""
    loop = asyncio.get_running_loop()
    connect: Callable[[socket.socket, Any], Any] = loop.sock_connect
    made: list[socket.socket] = []
    with socket.create_server((HOST, 0)) as listener:

        async def connect_and_be_reset(sock: socket.socket, address: object) -> None:
            await connect(sock, address)
            made.append(sock)
            far, _ = listener.accept()
            far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_OFF)
            far.close()

        monkeypatch.setattr(loop, "sock_connect", connect_and_be_reset)
        with pytest.raises(OSError, match="not connected"):
            await TcpNetwork().connect(HOST, listener.getsockname()[1], unreachable)
    assert [sock.fileno() for sock in made] == [-1]
