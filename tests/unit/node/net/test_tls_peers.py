"""TLS as servers and peers have it: who is counted, who a client is, and who met the wrong port."""

import asyncio
import logging
import random
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.base.clock import SystemClock
from barnabas.base.network import ListenerOptions, Part, Transport
from barnabas.base.tls.words import TlsError
from barnabas.node.broker.client_state import client_state
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.net.client import Peer
from barnabas.node.net.connection import Connection
from barnabas.node.net.connection_quotas import ConnectionLimits
from barnabas.node.net.dialer import Dialer
from barnabas.node.net.dialing import Dialing
from barnabas.node.net.server import Server, ServerLimits
from barnabas.node.net.tcp import TcpNetwork
from barnabas.node.security.certificate_names import CertificateNames
from support.certificates import Authority
from support.effort import examples
from support.patience import PATIENCE_S

HOST = "127.0.0.1"
TIMEOUT_S = PATIENCE_S


class Terms:
    handshake_timeout_ms = 60_000

    def __init__(self, made: ssl.SSLContext) -> None:
        self._made = made

    def context(self) -> ssl.SSLContext:
        return self._made


class World:
    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(self.authority.issue("broker"))
        server.load_verify_locations(self.authority.file)
        server.verify_mode = ssl.CERT_OPTIONAL
        # Closing with unread data (such as a ticket) discards data that was not sent yet.
        server.num_tickets = 0
        self.server = Terms(server)

    def client(self, name: str = "") -> Terms:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.authority.file)
        if name:
            context.load_cert_chain(self.authority.issue(name))
        return Terms(context)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("certificates"))


class Serving:
    """A server that answers each frame with the name of who sent it."""

    def __init__(self, options: ListenerOptions, **limits: int) -> None:
        connections = ConnectionLimits(**limits)  # type: ignore[arg-type]  # numbers all
        self.server = Server(
            TcpNetwork(), SystemClock(), self._answer, ServerLimits(connections=connections)
        )
        self.port = self.server.listen(HOST, 0, options)
        self.server.start()

    def _answer(self, connection: Connection, frame: bytearray) -> Sequence[Part]:
        name = str(client_state(connection).principal).encode()
        return (pack(">i", len(name)), name)


async def name_over(port: int, tls: Terms) -> bytes:
    """What the server answers; empty if it closes."""
    reader, writer = await asyncio.open_connection(HOST, port, ssl=tls.context())
    try:
        writer.write(pack(">i", 4) + b"who?")
        async with asyncio.timeout(TIMEOUT_S):
            return (await reader.read(1000))[4:]
    finally:
        writer.close()


def options(world: World, protocol: str = "SSL", rules: str = "DEFAULT") -> ListenerOptions:
    names = CertificateNames(rules)
    return ListenerOptions(protocol, protocol, tls=world.server, name_of=names.name_of)


@pytest.mark.parametrize(
    ("certificate", "protocol", "rules", "principal"),
    [
        ("alice", "SSL", "DEFAULT", b"User:CN=alice"),
        ("alice", "SSL", "RULE:^CN=(.*)$/$1/U", b"User:ALICE"),
        ("", "SSL", "DEFAULT", b"User:ANONYMOUS"),
        ("alice", "SASL_SSL", "DEFAULT", b"User:ANONYMOUS"),
    ],
)
async def test_requests_carry_the_name_of_the_certificate(
    world: World, certificate: str, protocol: str, rules: str, principal: bytes
) -> None:
    serving = Serving(options(world, protocol, rules))
    try:
        assert await name_over(serving.port, world.client(certificate)) == principal
    finally:
        serving.server.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_session_that_is_resumed_keeps_its_name(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    world = World(tmp_path)
    world.server.context().num_tickets = 2
    serving = Serving(options(world))
    alice, nobody = world.client("alice").context(), world.client().context()

    def ask(context: ssl.SSLContext, session: ssl.SSLSession | None) -> tuple[Any, bool, bytes]:
        context.maximum_version = version
        plain = socket.create_connection((HOST, serving.port), TIMEOUT_S)
        with context.wrap_socket(plain, server_hostname=HOST, session=session) as wrapped:
            wrapped.sendall(pack(">i", 4) + b"who?")
            name = wrapped.recv(1000)[4:]
            return wrapped.session, bool(wrapped.session_reused), name

    def work() -> None:
        session, _, name = ask(alice, None)
        assert name == b"User:CN=alice"
        assert ask(alice, session)[1:] == (True, b"User:CN=alice")
        session = ask(nobody, None)[0]
        assert ask(nobody, session)[1:] == (True, b"User:ANONYMOUS")

    try:
        await asyncio.to_thread(work)
    finally:
        serving.server.close()


async def test_who_has_a_name_that_no_rule_takes_is_not_served(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    serving = Serving(options(world, rules="RULE:^CN=bob$/bob/"))
    try:
        assert await name_over(serving.port, world.client("alice")) == b""
        (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
        assert "applies to CN=alice" in record.getMessage()
        assert record.exc_info is None
    finally:
        serving.server.close()


async def test_a_connection_in_its_handshake_counts(world: World) -> None:
    serving = Serving(options(world), connections_max=1)
    try:
        _, silent = await asyncio.open_connection(HOST, serving.port)
        waiting = asyncio.ensure_future(name_over(serving.port, world.client()))
        async with asyncio.timeout(TIMEOUT_S):
            while serving.server.connection_count == 0:  # noqa: ASYNC110  # nobody signals it
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        silent.close()
        assert await asyncio.wait_for(waiting, TIMEOUT_S) == b"User:ANONYMOUS"
    finally:
        serving.server.close()


def peer(port: int, tls: Terms | None) -> Peer:
    return Peer(TcpNetwork(), SystemClock(), HOST, port, client_id="test", dialing=Dialing(tls=tls))


async def test_a_peer_with_tls_on_a_plain_port_is_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    serving = Serving(ListenerOptions("PLAINTEXT"))
    asking = peer(serving.port, world.client())
    try:
        with pytest.raises(TlsError, match="closed the connection during the TLS handshake"):
            await asking.connect()
        assert "this looks like a TLS handshake, but the connection is plaintext" in caplog.text
    finally:
        asking.close()
        serving.server.close()


async def test_a_plain_peer_on_a_port_with_tls_is_told(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    serving = Serving(options(world))
    asking = peer(serving.port, None)
    try:
        with pytest.raises(ConnectionError, match="this looks like a TLS alert"):
            await asking.connect()
        assert "it sends Kafka requests in plain text" in caplog.text
    finally:
        asking.close()
        serving.server.close()


async def test_a_peer_that_trusts_nobody_there_says_so(world: World, tmp_path: Path) -> None:
    serving = Serving(options(world))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(Authority(tmp_path).file)
    asking = peer(serving.port, Terms(context))
    try:
        with pytest.raises(TlsError, match=r"no TLS with 127\.0\.0\.1:\d+: its certificate is not"):
            await asking.connect()
    finally:
        asking.close()
        serving.server.close()


@pytest.mark.parametrize(
    ("algorithm", "met"),
    [
        ("https", "its certificate is not accepted: IP address mismatch"),
        ("", "nobody asked for response"),  # TLS went well: this server answers names
    ],
)
async def test_a_node_refuses_another_one_whose_certificate_has_another_name(
    world: World, algorithm: str, met: str
) -> None:
    """As `ssl.endpoint.identification.algorithm` of the node that connects says."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.authority.issue("elsewhere", ["127.0.0.2"]))
    serving = Serving(ListenerOptions("SSL", "SSL", tls=Terms(context)))
    config = NodeConfig.from_properties(
        {
            "node.id": "1",
            "process.roles": "broker,controller",
            "listeners": "SSL://127.0.0.1:1,CONTROLLER://127.0.0.1:2",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
            "controller.quorum.voters": "1@127.0.0.1:2",
            "inter.broker.listener.name": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": world.authority.file,
            "ssl.endpoint.identification.algorithm": algorithm,
        }
    )
    asking = Dialer(config, TcpNetwork(), SystemClock(), random.Random()).peer(
        HOST, serving.port, "node-1"
    )
    try:
        with pytest.raises(ConnectionError, match=met):
            await asking.connect()
    finally:
        asking.close()
        serving.server.close()


async def test_a_peer_that_should_show_a_certificate_says_so(world: World) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.authority.issue("broker"))
    context.verify_mode = ssl.CERT_REQUIRED
    serving = Serving(ListenerOptions("SSL", "SSL", tls=Terms(context)))
    asking = peer(serving.port, world.client())
    try:
        # With TLS 1.3 it is refused when its own handshake is over already.
        with pytest.raises(TlsError, match="it requires a client certificate"):
            await asking.connect()
    finally:
        asking.close()
        serving.server.close()


# -- the same for plain and encrypted connections


class Keeper:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.data = bytearray()
        self.ended = asyncio.Event()
        self._buffer = memoryview(bytearray(777))

    def get_buffer(self) -> memoryview:
        return self._buffer

    def received(self, size_bytes: int) -> None:
        self.data += self._buffer[:size_bytes]

    def drained(self) -> None:
        """Nothing waits for it."""

    def closed(self, error: OSError | None) -> None:
        self.ended.set()


PARTS = st.lists(st.lists(st.binary(max_size=40_000), min_size=1, max_size=5), max_size=5)


@settings(max_examples=examples(7), deadline=None, suppress_health_check=list(HealthCheck))
@given(sends=PARTS)
def test_the_same_bytes_arrive_over_plain_text_and_tls(
    world: World, sends: list[list[bytes]]
) -> None:
    async def run(tls: Terms | None, client: Terms | None) -> bytes:
        network = TcpNetwork()

        def accept(transport: Transport) -> Keeper:
            handler = Keeper(transport)
            accepted.append(handler)
            arrived.set()
            return handler

        accepted: list[Keeper] = []
        arrived = asyncio.Event()
        listener = network.listen(HOST, 0, accept, ListenerOptions("X", tls=tls))
        listener.start()
        near = await network.connect(HOST, listener.port, Keeper, tls=client)
        for parts in sends:
            near.send(parts)
        near.close_when_sent()
        await asyncio.wait_for(arrived.wait(), TIMEOUT_S)
        await asyncio.wait_for(accepted[0].ended.wait(), TIMEOUT_S)
        listener.close()
        return bytes(accepted[0].data)

    expected = b"".join(b"".join(parts) for parts in sends)
    assert asyncio.run(run(None, None)) == expected
    assert asyncio.run(run(world.server, world.client())) == expected
