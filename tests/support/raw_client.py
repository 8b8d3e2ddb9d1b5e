"""A client that sends exactly the bytes a test wants, after a login where one is known."""

from __future__ import annotations

import socket
from struct import pack, unpack
from typing import Any, TypeVar

from barnabas.kafka.wire import AccessError, Connection, WireError
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.schema import Message
from support import client_logins
from support.node_process import wait_until
from support.patience import PATIENCE_S

M = TypeVar("M", bound=Message)


class RawClient:
    """One blocking connection."""

    def __init__(
        self, bootstrap_servers: str, timeout_s: float = PATIENCE_S, *, source: str = ""
    ) -> None:
        """`source` is the address to come from, where it matters."""
        host, _, port = bootstrap_servers.split(",")[0].rpartition(":")
        access = client_logins.access(bootstrap_servers, timeout_s)
        if access is None:
            self.socket = socket.create_connection(
                (host, int(port)), timeout_s, (source, 0) if source else None
            )
        else:
            try:
                self.socket = Connection(access, host, int(port))._socket
            except (AccessError, WireError) as error:
                raise OSError(str(error)) from error
        self.correlation_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_frame(self, payload: bytes) -> None:
        self.send_bytes(pack(">i", len(payload)) + payload)

    def is_closed_by_peer(self) -> bool:
        """Wait for the peer to close; False if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def receive_frame(self) -> bytes:
        (size,) = unpack(">i", self._receive(4))
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            assert piece, "the peer closed the connection"
            data += piece
        return data

    def send(self, api_key: int, version: int, request: Message) -> None:
        self.correlation_id += 1
        self.send_frame(encode_request(api_key, version, self.correlation_id, "raw", request))

    def receive(self, api_key: int, version: int, response_class: type[M]) -> M:
        frame = self.receive_frame()
        header, position = decode_response_header(APIS[api_key], version, frame)
        assert header.correlation_id == self.correlation_id
        response, end = decode_at(response_class, version, frame, position)
        assert end == len(frame)
        return response

    def call(self, request: Message, response_class: type[M], version: int | None = None) -> M:
        """One request and its answer, in the latest stable version unless one is given."""
        (api,) = [api for api in APIS.values() if api.request is type(request)]
        if version is None:
            version = api.max_version - (1 if api.latest_version_unstable else 0)
        self.send(api.key, version, request)
        return self.receive(api.key, version, response_class)

    def node_id(self) -> int:
        """The node at the other end."""
        _, port = self.socket.getpeername()
        return next(node_id for node_id, at in self._brokers().items() if at == port)

    def _brokers(self) -> dict[int, int]:
        answer = self.call(MetadataRequest(topics=[]), MetadataResponse)
        return {broker.node_id: broker.port for broker in answer.brokers}

    def create_topic(self, topic: str, configs: dict[str, str] | None = None) -> None:
        """Create a topic of one partition that leads here and has replicas on the other nodes."""
        here = self.node_id()
        replicas = [here, *(node_id for node_id in self._brokers() if node_id != here)]
        created = CreatableTopic(
            name=topic,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
        )
        request = CreateTopicsRequest(topics=[created], timeout_ms=5000)
        (result,) = self.call(request, CreateTopicsResponse).topics
        assert result.error_code == ErrorCode.NONE, result.error_message
        self.wait_for_topic(topic, ErrorCode.NONE)

    def wait_for_topic(self, topic: str, code: ErrorCode) -> None:
        """Wait until this node answers `code` for a topic: NONE once it knows it."""
        asked = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        wait_until(
            lambda: self.call(asked, MetadataResponse).topics[0].error_code == code,
            f"{code.name} for {topic} from {self.socket.getpeername()}",
        )

    def topic_id(self, topic: str) -> Any:
        """The id of a topic, which is created if it is missing."""
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        return self.call(asked, MetadataResponse).topics[0].topic_id

    def produce(
        self,
        topic: str,
        records: bytes | None,
        *,
        acks: int = -1,
        version: int = 12,
        partition: int = 0,
    ) -> PartitionProduceResponse:
        """Send `records`, valid or not, to one partition."""
        request = ProduceRequest(
            acks=acks,
            timeout_ms=5000,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[PartitionProduceData(index=partition, records=records)],
                )
            ],
        )
        response = self.call(request, ProduceResponse, version)
        return response.responses[0].partition_responses[0]
