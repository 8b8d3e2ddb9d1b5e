"""Connections of our own to brokers that answer from a script: versions, logins and their ends."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from struct import Struct
from typing import Any

import pytest

from barnabas.kafka.wire import Access, BrokenOffError, Connection, LoginError, UnservedError
from barnabas.kafka.wire_admin import AbsentNodeError, NodeError, NoNodeError, WireAdmin
from barnabas.protocol.apis import APIS, METADATA, ApiKey
from barnabas.protocol.codec import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import decode_request_header, encode_response_header
from barnabas.protocol.messages.connections import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.credentials import SaslAuthenticateResponse, SaslHandshakeResponse
from barnabas.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from barnabas.protocol.schema import Message

SIZE = Struct(">i")
LOGIN_MS = 100


class Broker:
    """Answers requests by their API; None ends the connection instead."""

    def __init__(self) -> None:
        self.answers: dict[int, Message | None] = {
            ApiKey.METADATA: MetadataResponse(),
            ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
            ApiKey.SASL_AUTHENTICATE: SaslAuthenticateResponse(),
        }
        self.newest_of_versions = 4
        self.asked: list[tuple[int, int]] = []
        """The API and version of each request."""
        self._made: list[Connection] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def access(self, **more: Any) -> Access:
        return Access(f"127.0.0.1:{self.port}", timeout_seconds=30.0, **more)

    def connect(self, **more: Any) -> Connection:
        self._made.append(Connection(self.access(**more), "127.0.0.1", self.port))
        return self._made[-1]

    def close(self) -> None:
        for connection in self._made:
            connection.close()
        # A thread that waits in `accept` would keep the port open.
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        with stream, stream.makefile("rb") as requests:
            while head := requests.read(SIZE.size):
                header, _ = decode_request_header(requests.read(SIZE.unpack(head)[0]))
                key, version = header.request_api_key, header.request_api_version
                self.asked.append((key, version))
                answer = self.answers.get(key)
                if key == ApiKey.API_VERSIONS:
                    answer = self._versions(version)
                    version = version if version <= self.newest_of_versions else 0
                if answer is None:
                    return
                body = encode_response_header(APIS[key], version, header.correlation_id)
                body += encode(answer, version)
                stream.sendall(SIZE.pack(len(body)) + body)

    def _versions(self, version: int) -> ApiVersionsResponse:
        is_known = version <= self.newest_of_versions
        return ApiVersionsResponse(
            error_code=ErrorCode.NONE if is_known else ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(api_key=key, min_version=0, max_version=APIS[key].max_stable_version)
                for key in self.answers
            ]
            + [ApiVersion(api_key=ApiKey.API_VERSIONS, max_version=self.newest_of_versions)],
        )


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    with contextlib.suppress(OSError):
        made.close()


def test_an_old_broker_is_asked_for_its_versions_again(broker: Broker) -> None:
    broker.newest_of_versions = 1
    assert isinstance(broker.connect().call(METADATA, MetadataRequest(topics=[])), MetadataResponse)
    newest = APIS[ApiKey.API_VERSIONS].max_stable_version
    assert broker.asked[:2] == [(ApiKey.API_VERSIONS, newest), (ApiKey.API_VERSIONS, 1)]


def test_an_api_that_a_broker_lacks_is_named(broker: Broker) -> None:
    connection = broker.connect()
    assert connection.serves(ApiKey.METADATA)
    assert not connection.serves(ApiKey.DESCRIBE_CLUSTER)
    with pytest.raises(UnservedError, match="does not serve DESCRIBE_CLUSTER"):
        connection.call(APIS[ApiKey.DESCRIBE_CLUSTER], DescribeClusterRequest())


def test_a_connection_that_the_broker_ended_is_over(broker: Broker) -> None:
    connection = broker.connect()
    assert not connection.is_over
    broker.answers[ApiKey.METADATA] = None
    with pytest.raises(BrokenOffError) as raised:
        connection.call(METADATA, MetadataRequest(topics=[]))
    assert raised.value.reason == "it closed the connection"
    assert connection.is_over


def test_a_connection_is_over_before_its_login_ends(broker: Broker) -> None:
    assert not broker.connect(mechanism="PLAIN").is_over
    authenticated = SaslAuthenticateResponse(session_lifetime_ms=LOGIN_MS)
    broker.answers[ApiKey.SASL_AUTHENTICATE] = authenticated
    connection = broker.connect(mechanism="PLAIN")
    while not connection.is_over:
        threading.Event().wait(LOGIN_MS / 1000)


@pytest.mark.parametrize(
    ("key", "answer", "words"),
    [
        (
            ApiKey.SASL_HANDSHAKE,
            SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI"]
            ),
            "refused the login by PLAIN; its mechanisms are: GSSAPI",
        ),
        (
            ApiKey.SASL_AUTHENTICATE,
            SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="no"
            ),
            "by PLAIN failed: no",
        ),
    ],
)
def test_a_refused_login_says_why(broker: Broker, key: int, answer: Message, words: str) -> None:
    broker.answers[key] = answer
    with pytest.raises(LoginError, match=words):
        broker.connect(mechanism="PLAIN", user="u", password="secret")


@pytest.fixture
def admin(broker: Broker) -> Iterator[WireAdmin]:
    """An Admin for a cluster of the broker, as 1, and of one as 2 that nobody is."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        broker.answers[ApiKey.DESCRIBE_CLUSTER] = DescribeClusterResponse(
            cluster_id="c",
            brokers=[
                DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=broker.port),
                DescribeClusterBroker(broker_id=2, host="127.0.0.1", port=taken.getsockname()[1]),
            ],
        )
        made = WireAdmin(broker.access())
        yield made
        made.close()


def test_brokers_are_asked_together(admin: WireAdmin) -> None:
    request = MetadataRequest(topics=[])
    answer, silent, absent = admin.ask_each([(1, request), (2, request), (3, request)])
    assert isinstance(answer, MetadataResponse)
    assert (type(silent), silent.cause.reason) == (NodeError, "connection refused")
    assert isinstance(absent, AbsentNodeError)
    assert [node.id for node in admin.unanswering()] == [2]


def test_an_idle_connection_that_has_ended_is_replaced(admin: WireAdmin) -> None:
    admin.describe()
    (idle,) = admin._connections.values()
    idle.abort()
    assert admin.ask(MetadataRequest(topics=[]), 1) == MetadataResponse()


def test_one_connection_is_kept_of_two_that_were_used_at_once(
    admin: WireAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.describe()
    call = Connection.call
    used: list[Connection] = []

    def call_within_another(connection: Connection, *given: Any) -> Any:
        used.append(connection)
        if len(used) == 1:
            admin.ask(MetadataRequest(topics=[]), 1)
        return call(connection, *given)

    monkeypatch.setattr(Connection, "call", call_within_another)
    admin.ask(MetadataRequest(topics=[]), 1)
    first, second = used
    assert list(admin._connections.values()) == [second]
    assert (first._socket.fileno(), second._socket.fileno() > 0) == (-1, True)


def test_a_cluster_that_is_down_is_named(broker: Broker) -> None:
    admin = WireAdmin(broker.access())
    broker.close()
    with pytest.raises(NoNodeError, match=rf"127.0.0.1:{broker.port} \(connection refused\)"):
        admin.describe()
