"""A network of addresses that refuse, stay silent or answer DescribeCluster, and who was called."""

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.base.network import SYSTEM_OPTIONS, Part, SocketOptions, StreamHandler, Transport
from barnabas.protocol.apis import APIS, ApiKey
from barnabas.protocol.codec import encode
from barnabas.protocol.frames import decode_request_header, encode_response_header
from barnabas.protocol.messages.connections import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.metadata import DescribeClusterResponse

Address = tuple[str, int]
_LENGTH = struct.Struct(">i")


class FakeNetwork:
    """Addresses that are not in `nodes` refuse connections."""

    def __init__(self, *nodes: Address) -> None:
        self.nodes = {address: FakeNode(address[0]) for address in nodes}
        self.called: list[Address] = []

    async def connect(
        self,
        host: str,
        port: int,
        factory: Callable[[Transport], StreamHandler],
        _options: SocketOptions = SYSTEM_OPTIONS,
        _tls: object = None,
    ) -> Transport:
        self.called.append((host, port))
        node = self.nodes.get((host, port))
        if node is None:
            raise ConnectionRefusedError(f"{host}:{port} refuses")
        connection = FakeConnection(node)
        connection.handler = factory(connection)
        node.connections.append(connection)
        return connection

    def listen(self, *_: Any) -> Any:
        raise AssertionError("nobody listens here")


class FakeNode:
    """Answers with its own name, unless it holds its answers or closes in their place."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.connections: list[FakeConnection] = []
        self.client_ids: list[str | None] = []
        self.is_silent = False
        self.closes = False


class FakeConnection:
    """The sending side; what is answered comes with the next turn of the loop."""

    def __init__(self, node: FakeNode) -> None:
        self.node = node
        self.peer_host, self.peer_port = node.name, 1
        self.tls = None
        self.handler: StreamHandler | None = None
        self.is_closed = False

    def send(self, parts: Sequence[Part]) -> None:
        frame = b"".join(bytes(part) for part in parts)[_LENGTH.size :]  # type: ignore[arg-type]
        header, _ = decode_request_header(frame)
        api = APIS[ApiKey(header.request_api_key)]
        response: Any
        if api.key == ApiKey.API_VERSIONS:
            served = APIS[ApiKey.DESCRIBE_CLUSTER], api
            response = ApiVersionsResponse(
                api_keys=[
                    ApiVersion(
                        api_key=one.key, min_version=one.min_version, max_version=one.max_version
                    )
                    for one in served
                ]
            )
        else:
            self.node.client_ids.append(header.client_id)
            if self.node.closes:
                self.lose()
            if self.node.closes or self.node.is_silent:
                return
            response = DescribeClusterResponse(cluster_id=self.node.name)
        version = header.request_api_version
        body = encode_response_header(api, version, header.correlation_id)
        self._deliver(body + encode(response, version))

    def _deliver(self, body: bytes) -> None:
        def arrive() -> None:
            left = memoryview(_LENGTH.pack(len(body)) + body)
            while left and not self.is_closed:
                assert self.handler is not None
                buffer = self.handler.get_buffer()
                size = min(len(buffer), len(left))
                buffer[:size] = left[:size]
                self.handler.received(size)
                left = left[size:]

        asyncio.get_running_loop().call_soon(arrive)

    def lose(self) -> None:
        """The other side closes."""
        asyncio.get_running_loop().call_soon(self._closed)

    def _closed(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            assert self.handler is not None
            self.handler.closed(None)

    def close(self) -> None:
        self.lose()

    def close_when_sent(self) -> None:
        self.lose()

    def unsent_bytes(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass
