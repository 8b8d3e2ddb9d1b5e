"""TLS connections over loopback: what arrives, who waits, and how they begin and end."""

import asyncio
import logging
import os
import random
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.base.disk import FileRange
from barnabas.base.local_disk import LocalDisk
from barnabas.base.network import ListenerOptions, Part, SocketOptions, Transport
from barnabas.base.tls.words import TlsError
from barnabas.node.net.tcp import TcpNetwork
from barnabas.node.net.tls_transport import (
    ANSWERS_SIZE_MAX_BYTES,
    PIECE_SIZE_BYTES,
    PIECES_MAX,
    TlsTransport,
)
from support.certificates import Authority
from support.patience import PATIENCE_S

TIMEOUT_S = PATIENCE_S
HOST = "127.0.0.1"
SMALL = SocketOptions(receive_buffer_bytes=4096, send_buffer_bytes=4096)


class Terms:
    """One side, with a context of the test's."""

    def __init__(self, context: ssl.SSLContext, handshake_timeout_ms: int = 60_000) -> None:
        self.handshake_timeout_ms = handshake_timeout_ms
        self.made = context

    def context(self) -> ssl.SSLContext:
        return self.made


class World:
    """An authority that both sides trust."""

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory)
        self.own = self.authority.issue("broker")

    def server(self, own: str | None = None, *, asks: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own or self.own)
        if asks:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.authority.file)
        return context

    def client(self, own: str | None = None) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.authority.file)
        if own:
            context.load_cert_chain(own)
        return context


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("certificates"))


class Handler:
    """Keeps the bytes that arrive, and wakes the waiting test."""

    def __init__(self, transport: Transport, buffer_bytes: int = 1 << 16) -> None:
        self.transport = transport
        self.data = bytearray()
        self.ended = False
        self.error: OSError | None = None
        self.was_drained = False
        self.pauses_at: int | None = None
        self._buffer = memoryview(bytearray(buffer_bytes))
        self._changed = asyncio.Event()

    def get_buffer(self) -> memoryview:
        return self._buffer

    def received(self, size_bytes: int) -> None:
        self.data += self._buffer[:size_bytes]
        if self.pauses_at is not None and len(self.data) >= self.pauses_at:
            self.transport.pause_reading()
        self._changed.set()

    def drained(self) -> None:
        self.was_drained = True
        self._changed.set()

    def closed(self, error: OSError | None) -> None:
        self.ended, self.error = True, error
        self._changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class Pair:
    """Two ends of one connection, or of one that is only tried."""

    def __init__(self, server: Terms, *, buffer_bytes: int = 1 << 16) -> None:
        self.accepted: list[Handler] = []
        self.any_accepted = asyncio.Event()
        self.network = TcpNetwork()
        self.buffer_bytes = buffer_bytes
        self.pauses_at_once = False
        options = ListenerOptions("SSL", "SSL", socket=SMALL, tls=server)
        self.listener = self.network.listen(HOST, 0, self._accept, options)
        self.listener.start()

    def _accept(self, transport: Transport) -> Handler:
        self.accepted.append(Handler(transport, self.buffer_bytes))
        if self.pauses_at_once:
            transport.pause_reading()
        self.any_accepted.set()
        return self.accepted[-1]

    async def connect(self, client: ssl.SSLContext) -> tuple[Handler, Handler]:
        """The client's end and the server's, both open."""
        near: list[Handler] = []

        def made(transport: Transport) -> Handler:
            near.append(Handler(transport, self.buffer_bytes))
            return near[0]

        async with asyncio.timeout(TIMEOUT_S):
            await self.network.connect(HOST, self.listener.port, made, SMALL, Terms(client))
            near[0].transport.send((b"?",))
        far = self.accepted[-1]
        await far.until(lambda: far.data)
        far.data.clear()
        return near[0], far

    def close(self) -> None:
        self.listener.close()
        for handler in self.accepted:
            handler.transport.close()


async def with_pair(
    server: ssl.SSLContext,
    client: ssl.SSLContext,
    test: Callable[[Handler, Handler], Awaitable[None]],
    *,
    buffer_bytes: int = 1 << 16,
) -> None:
    pair = Pair(Terms(server), buffer_bytes=buffer_bytes)
    near = None
    try:
        near, far = await pair.connect(client)
        await test(near, far)
    finally:
        if near is not None:
            near.transport.close()
        pair.close()


def parts_of(data: bytes, seed: int) -> list[Part]:
    """`data` in pieces of random sizes and kinds, some of them empty."""
    source = random.Random(seed)
    parts: list[Part] = []
    position = 0
    while position < len(data):
        size = source.choice((0, 1, 7, 300, 5_000, 70_000, 400_000))
        piece = data[position : position + size]
        parts.append(source.choice((bytes, bytearray, memoryview))(piece))
        position += size
    return parts


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size_bytes", [1, 16_384, 16_385, PIECE_SIZE_BYTES + 1, 3_000_000])
async def test_bytes_arrive_as_they_were_sent_both_ways(
    world: World, version: ssl.TLSVersion, size_bytes: int
) -> None:
    client = world.client()
    client.minimum_version = client.maximum_version = version
    data = random.Random(size_bytes).randbytes(size_bytes)

    async def test(near: Handler, far: Handler) -> None:
        near.transport.send(parts_of(data, 1))
        far.transport.send(parts_of(data, 2))
        await far.until(lambda: len(far.data) == size_bytes)
        await near.until(lambda: len(near.data) == size_bytes)
        assert far.data == data
        assert near.data == data
        assert near.transport.tls is not None
        assert near.transport.tls.version == ("TLSv1.3" if version == 772 else "TLSv1.2")

    await with_pair(world.server(), client, test)


@pytest.mark.parametrize("buffer_bytes", [1, 100, 16_384, 1 << 18])
async def test_bytes_arrive_in_whatever_buffer_there_is(world: World, buffer_bytes: int) -> None:
    data = random.Random(5).randbytes(50_000)

    async def test(near: Handler, far: Handler) -> None:
        near.transport.send((data,))
        await far.until(lambda: len(far.data) == len(data))
        assert far.data == data

    await with_pair(world.server(), world.client(), test, buffer_bytes=buffer_bytes)


async def test_what_openssl_holds_is_handed_on_after_a_pause(world: World) -> None:
    """A record has been received and decrypted in part: no byte will arrive that wakes it."""
    data = random.Random(6).randbytes(16_000)

    async def test(near: Handler, far: Handler) -> None:
        far.pauses_at = 100
        near.transport.send((data,))
        for until in (100, 8_000, 15_000):
            far.pauses_at = until
            far.transport.resume_reading()
            await far.until(lambda: len(far.data) >= (far.pauses_at or 0))
            seen = len(far.data)
            for _ in range(5):
                await asyncio.sleep(0)
            assert len(far.data) == seen < len(data)
        far.pauses_at = None
        far.transport.resume_reading()
        await far.until(lambda: len(far.data) == len(data))
        assert far.data == data

    await with_pair(world.server(), world.client(), test, buffer_bytes=100)


async def test_who_pauses_before_the_handshake_reads_nothing_after_it(world: World) -> None:
    pair = Pair(Terms(world.server()))
    pair.pauses_at_once = True
    near: list[Handler] = []

    def made(transport: Transport) -> Handler:
        near.append(Handler(transport))
        return near[0]

    try:
        async with asyncio.timeout(TIMEOUT_S):
            await pair.network.connect(HOST, pair.listener.port, made, SMALL, Terms(world.client()))
        near[0].transport.send((b"early",))
        far = pair.accepted[0]
        for _ in range(100):
            await asyncio.sleep(0)
        assert not far.data
        far.transport.resume_reading()
        await far.until(lambda: far.data == b"early")
    finally:
        near[0].transport.close()
        pair.close()


async def test_who_does_not_read_holds_up_the_sender(world: World) -> None:
    data = random.Random(7).randbytes(8 << 20)

    async def test(near: Handler, far: Handler) -> None:
        far.transport.pause_reading()
        near.transport.send((data, b"!"))
        held = near.transport.unsent_bytes()
        assert held > len(data) // 2
        assert not near.was_drained
        far.transport.resume_reading()
        await far.until(lambda: len(far.data) == len(data) + 1)
        await near.until(lambda: near.was_drained)
        assert near.transport.unsent_bytes() == 0
        assert far.data == data + b"!"

    await with_pair(world.server(), world.client(), test)


async def test_ranges_of_files_arrive(world: World, tmp_path: Path) -> None:
    data = random.Random(8).randbytes(700_000)
    path = tmp_path / "segment"
    path.write_bytes(data)
    disk = LocalDisk()
    file = disk.open(str(path))

    async def test(near: Handler, far: Handler) -> None:
        parts: Sequence[Part] = (b"head", FileRange(file, 100, 600_000), b"tail")
        far.transport.send(parts)
        await near.until(lambda: len(near.data) == 600_008)
        assert near.data == b"head" + data[100:600_100] + b"tail"
        far.transport.send((FileRange(file, 699_000, 2_000),))  # more than there is
        await near.until(lambda: near.ended)
        assert isinstance(far.error, ConnectionAbortedError)

    try:
        await with_pair(world.server(), world.client(), test)
    finally:
        file.close()
        disk.close()


async def test_a_close_when_sent_sends_all_and_ends_in_order(world: World) -> None:
    data = random.Random(9).randbytes(2 << 20)

    async def test(near: Handler, far: Handler) -> None:
        far.transport.send((data,))
        far.transport.close_when_sent()
        far.transport.send((b"too late",))
        await near.until(lambda: near.ended)
        assert near.data == data
        assert near.error is None

    await with_pair(world.server(), world.client(), test)


async def test_after_a_close_notify_the_connection_ends(world: World) -> None:
    """A client that will send no more gets no more, as over plain text."""

    async def test(near: Handler, far: Handler) -> None:
        transport = near.transport
        assert isinstance(transport, TlsTransport)
        with suppress(ssl.SSLError):
            transport._ssl.unwrap()
        transport._sock.send(transport._outgoing.read())
        await far.until(lambda: far.ended)
        assert far.error is None

    await with_pair(world.server(), world.client(), test)


@pytest.mark.parametrize("is_reset", [False, True])
async def test_a_connection_may_end_without_a_word_of_tls(world: World, is_reset: bool) -> None:
    async def test(near: Handler, far: Handler) -> None:
        transport = near.transport
        assert isinstance(transport, TlsTransport)
        if is_reset:
            linger = (1).to_bytes(4, "little") + bytes(4)
            transport._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport._is_open = False  # so that it says nothing
        transport.close()
        await far.until(lambda: far.ended)
        assert isinstance(far.error, ConnectionResetError) == is_reset

    await with_pair(world.server(), world.client(), test)


async def test_what_is_no_tls_ends_an_open_connection(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(near: Handler, far: Handler) -> None:
        transport = near.transport
        assert isinstance(transport, TlsTransport)
        transport._sock.send(b"\x17\x03\x03\x00\x20" + bytes(32))
        await far.until(lambda: far.ended)
        assert isinstance(far.error, TlsError)
        await near.until(lambda: near.ended)

    await with_pair(world.server(), world.client(), test)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_certificate_names_the_client(world: World) -> None:
    async def test(near: Handler, far: Handler) -> None:
        assert far.transport.tls is not None
        assert far.transport.tls.peer_subject == "CN=alice"

    await with_pair(world.server(asks=True), world.client(world.authority.issue("alice")), test)


async def test_who_shows_no_certificate_has_no_name(world: World) -> None:
    async def test(near: Handler, far: Handler) -> None:
        assert far.transport.tls is not None
        assert far.transport.tls.peer_subject is None

    await with_pair(world.server(), world.client(), test)


# -- handshakes that fail


async def failure_of(
    server: ssl.SSLContext, client: ssl.SSLContext, host: str = HOST
) -> tuple[str, Pair]:
    """Return the error that the client's caller gets; both ends have closed."""
    pair = Pair(Terms(server))
    handlers: list[Handler] = []

    def made(transport: Transport) -> Handler:
        handlers.append(Handler(transport))
        return handlers[0]

    try:
        async with asyncio.timeout(TIMEOUT_S):
            try:
                await pair.network.connect(host, pair.listener.port, made, SMALL, Terms(client))
            except TlsError as error:
                reason = str(error)
            else:  # in TLS 1.3 a client is done before the server has seen its certificate
                await handlers[0].until(lambda: handlers[0].ended)
                reason = str(handlers[0].error)
        await pair.accepted[0].until(lambda: pair.accepted[0].ended)
        assert not pair.accepted[0].data
    finally:
        pair.close()
    return reason, pair


@pytest.mark.parametrize(
    ("case", "of_client", "of_server"),
    [
        ("unknown authority", "its certificate is not accepted", "does not trust the authority"),
        ("wrong host", "not valid for '127.0.0.1'", "refused our certificate"),
        ("expired", "certificate has expired", "refused our certificate: expired"),
        ("no certificate", "it requires a client certificate", "it showed no certificate"),
        ("expired client", "refused our certificate: expired", "certificate has expired"),
        ("no version", "none of our TLS versions", "versions of TLS that are not enabled"),
    ],
)
async def test_both_ends_are_told_why_there_is_no_tls(
    world: World,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    case: str,
    of_client: str,
    of_server: str,
) -> None:
    server, client = world.server(), world.client()
    match case:
        case "unknown authority":
            server = world.server(Authority(tmp_path).issue("stranger"))
        case "wrong host":
            server = world.server(world.authority.issue("elsewhere", ["10.0.0.1"]))
        case "expired":
            server = world.server(world.authority.issue("old", days=-1))
        case "no certificate":
            server = world.server(asks=True)
        case "expired client":
            server = world.server(asks=True)
            client = world.client(world.authority.issue("old-client", days=-1))
        case "no version":
            server.minimum_version = ssl.TLSVersion.TLSv1_3
            client.maximum_version = ssl.TLSVersion.TLSv1_2
    reason, _ = await failure_of(server, client)
    assert of_client in reason
    (record,) = [each for each in caplog.records if each.name.startswith("barnabas")]
    assert record.levelname == "WARNING"
    assert of_server in record.getMessage()
    assert record.exc_info is None


async def test_a_plain_client_is_told_in_an_alert(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Pair(Terms(world.server()))
    try:
        reader, writer = await asyncio.open_connection(HOST, pair.listener.port)
        writer.write(bytes.fromhex("0000001e 0012 0003 00000001 0007") + b"rdkafka")
        async with asyncio.timeout(TIMEOUT_S):
            answer = await reader.read()
        writer.close()
        assert answer.hex() == "15030300020246"
        assert pair.accepted[0].ended
        (message,) = caplog.messages
        assert "it sends Kafka requests in plain text" in message
    finally:
        pair.close()


async def test_a_browser_is_recognised(world: World, caplog: pytest.LogCaptureFixture) -> None:
    pair = Pair(Terms(world.server()))
    try:
        reader, writer = await asyncio.open_connection(HOST, pair.listener.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(TIMEOUT_S):
            await reader.read()
        writer.close()
        assert "HTTP" in caplog.messages[0]
    finally:
        pair.close()


async def test_a_probe_of_the_port_is_no_event(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    pair = Pair(Terms(world.server()))
    try:
        _, writer = await asyncio.open_connection(HOST, pair.listener.port)
        writer.close()
        async with asyncio.timeout(TIMEOUT_S):
            await pair.any_accepted.wait()
        await pair.accepted[0].until(lambda: pair.accepted[0].ended)
        assert caplog.messages == []
    finally:
        pair.close()


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"])
async def test_a_handshake_that_stands_still_is_ended(world: World, sent: bytes) -> None:
    pair = Pair(Terms(world.server(), handshake_timeout_ms=50))
    try:
        reader, writer = await asyncio.open_connection(HOST, pair.listener.port)
        writer.write(sent)
        async with asyncio.timeout(TIMEOUT_S):
            assert await reader.read() == b""
        writer.close()
        assert isinstance(pair.accepted[0].error, TlsError)
    finally:
        pair.close()


async def test_a_client_waits_for_a_server_that_says_nothing_only_so_long(world: World) -> None:
    silent = socket.create_server((HOST, 0))
    try:
        with pytest.raises(TlsError, match="in time"):
            await TcpNetwork().connect(
                HOST, silent.getsockname()[1], Handler, SMALL, Terms(world.client(), 50)
            )
    finally:
        silent.close()


async def test_a_client_that_gives_up_leaves_nothing_behind(world: World) -> None:
    silent = socket.create_server((HOST, 0))
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await TcpNetwork().connect(
                    HOST, silent.getsockname()[1], Handler, SMALL, Terms(world.client())
                )
        far, _ = silent.accept()
        with far:
            while far.recv(4096):
                pass  # what it had sent, and then its end
    finally:
        silent.close()


async def test_a_plain_server_is_named_to_the_client(world: World) -> None:
    listener = TcpNetwork().listen(HOST, 0, Closing)
    listener.start()
    try:
        with pytest.raises(TlsError, match="closed the connection during the TLS handshake"):
            await TcpNetwork().connect(HOST, listener.port, Handler, SMALL, Terms(world.client()))
    finally:
        listener.close()


class Closing(Handler):
    """Hangs up at the first byte, as a broker does for what it cannot read."""

    def received(self, size_bytes: int) -> None:
        self.transport.close()


async def test_a_peer_that_asks_and_does_not_read_is_ended(world: World) -> None:
    """Answers of TLS itself are bounded too."""

    async def test(near: Handler, far: Handler) -> None:
        transport = far.transport
        assert isinstance(transport, TlsTransport)
        transport._ciphertext = bytes(PIECES_MAX * PIECE_SIZE_BYTES + ANSWERS_SIZE_MAX_BYTES + 1)
        transport._answer()
        assert far.ended
        assert isinstance(far.error, TlsError)

    await with_pair(world.server(), world.client(), test)


async def test_many_handshakes_at_once_all_come_to_an_end(world: World) -> None:
    pair = Pair(Terms(world.server()))
    client = world.client()
    try:
        async with asyncio.timeout(TIMEOUT_S):
            ends = await asyncio.gather(
                *(
                    pair.network.connect(HOST, pair.listener.port, Handler, SMALL, Terms(client))
                    for _ in range(50)
                )
            )
        for end in ends:
            assert end.tls is not None
            end.close()
    finally:
        pair.close()


def test_random_parts_are_what_they_should_be() -> None:
    data = os.urandom(1_000_000)
    assert b"".join(bytes(part) for part in parts_of(data, 3)) == data  # type: ignore[arg-type]


def client_hello(context: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    with suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("seed", range(30))
async def test_a_spoilt_handshake_ends_alone(
    world: World, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    """Random bytes in a handshake: others are served, and no internal error occurs."""
    source = random.Random(seed)
    hello = bytearray(client_hello(world.client()))
    for _ in range(source.randrange(1, 6)):
        hello[source.randrange(len(hello))] = source.randrange(256)
    cut = source.choice((len(hello), source.randrange(1, len(hello))))
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    pair = Pair(Terms(world.server()))
    try:
        _, writer = await asyncio.open_connection(HOST, pair.listener.port)
        writer.write(bytes(hello[:cut]) + source.randbytes(source.choice((0, 5, 3_000))))
        near, _ = await pair.connect(world.client())
        near.transport.close()
        writer.close()
        await pair.accepted[0].until(lambda: pair.accepted[0].ended)
        assert not pair.accepted[0].data
    finally:
        pair.close()
    assert failures == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
