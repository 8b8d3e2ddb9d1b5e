"""Normal forms of addresses: an IPv4 client has the same one on a dual-stack socket."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.addresses import normal_address
from barnabas.base.network import Transport
from barnabas.node.net.tcp import TcpNetwork


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:ffff:a00:1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("FE80::0:1%eth0", "fe80::1"),
        ("localhost", None),
        ("*", None),
        ("", None),
    ],
)
def test_an_address_in_its_one_form(written: str, meant: str | None) -> None:
    assert normal_address(written) == meant


async def test_a_socket_for_both_protocols_names_clients_of_ipv4_as_they_are() -> None:
    came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    handler: Any = SimpleNamespace(closed=lambda error: None, get_buffer=lambda: bytearray(16))

    def accepted(transport: Transport) -> Any:
        came.set_result(transport.peer_host)
        return handler

    try:
        listener = TcpNetwork().listen("::", 0, accepted)
    except OSError:
        pytest.skip("this machine has no IPv6")
    listener.start()
    try:
        with socket.create_connection(("127.0.0.1", listener.port)):
            assert await came == "127.0.0.1"
    finally:
        listener.close()
