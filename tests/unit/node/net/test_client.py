"""The asking side of a connection, against a node and against peers that misbehave."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable

import pytest

from barnabas.app.cluster import Cluster
from barnabas.base.clock import SystemClock
from barnabas.node.net.client import Peer, UnsupportedByPeerError
from barnabas.node.net.tcp import TcpNetwork
from barnabas.protocol.messages.metadata import DescribeClusterRequest, MetadataRequest
from barnabas.protocol.messages.quorum import VoteRequest
from support.patience import PATIENCE_S


def peer_of(address: str, *, request_timeout_ms: int = 10_000) -> Peer:
    host, _, port = address.partition(":")
    return Peer(
        TcpNetwork(),
        SystemClock(),
        host,
        int(port),
        client_id="test",
        request_timeout_ms=request_timeout_ms,
    )


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with Cluster() as cluster:
        yield cluster.bootstrap_servers


async def test_requests_are_pipelined_over_one_connection(address: str) -> None:
    peer = peer_of(address)
    answers = await asyncio.gather(
        peer.send(MetadataRequest(topics=[])), *(peer.send(DescribeClusterRequest()) for _ in "abc")
    )
    assert [len(answer.brokers) for answer in answers] == [1, 1, 1, 1]
    assert peer.is_connected
    peer.close()
    with pytest.raises(ConnectionAbortedError):
        await peer.send(DescribeClusterRequest())


async def test_an_api_that_the_peer_lacks_is_said(address: str) -> None:
    peer = peer_of(address)
    with pytest.raises(UnsupportedByPeerError, match="VOTE"):
        await peer.send(VoteRequest())
    peer.close()


async def test_a_dead_process_refuses() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        await peer_of(f"127.0.0.1:{port}").send(DescribeClusterRequest())


Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]


def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


def say_nonsense(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(struct.pack(">ii", 4, 77))


def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Leave the connection open."""


@pytest.mark.parametrize(
    ("answer", "error"),
    [(close, ConnectionResetError), (say_nonsense, ConnectionError), (say_nothing, TimeoutError)],
)
async def test_what_goes_wrong_reaches_who_asked(answer: Answer, error: type[Exception]) -> None:
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        answer(reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wait_ms = 200 if answer is say_nothing else int(PATIENCE_S * 1000)
    peer = Peer(
        TcpNetwork(), SystemClock(), "127.0.0.1", port, client_id="test", connect_timeout_ms=wait_ms
    )
    with pytest.raises(error):
        await peer.send(DescribeClusterRequest())
    assert not peer.is_connected
    server.close()
    for writer in writers:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    await server.wait_closed()


async def test_who_waits_for_a_connection_is_told_that_the_client_was_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        peer = peer_of(f"127.0.0.1:{server.getsockname()[1]}")
        asked = asyncio.ensure_future(peer.send(DescribeClusterRequest()))
        left = asyncio.ensure_future(peer.send(DescribeClusterRequest()))
        await asyncio.sleep(0)
        left.cancel()
        peer.close()
        with pytest.raises(ConnectionAbortedError):
            await asked
        with pytest.raises(asyncio.CancelledError):
            await left


async def test_the_loss_of_a_connection_is_told_and_mended() -> None:
    lost = asyncio.Event()
    async with Cluster() as cluster:
        peer = peer_of(cluster.bootstrap_servers)
        peer.on_closed = lost.set
        await peer.send(DescribeClusterRequest())
    await asyncio.wait_for(lost.wait(), PATIENCE_S)
    assert not peer.is_connected
