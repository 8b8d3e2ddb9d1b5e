"""A blocking client that speaks just enough of the protocol, and costs little to start."""

import socket
import ssl
import time
from typing import TypeVar, cast

from barnabas.base.disk import Buffer
from barnabas.protocol.apis import APIS
from barnabas.protocol.codec import decode_at
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.connections import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.protocol.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.records.records import Record, encode_batch
from barnabas.protocol.schema import Message

R = TypeVar("R", bound=Message)

API_VERSIONS_VERSION = 3
CREATE_TOPICS_VERSION = 5
METADATA_VERSION = 9
ALTER_CONFIGS_VERSION = 1
PRODUCE_VERSION = 9
RETRY_SECONDS = 0.005
IN_FLIGHT = 5
ERRORS = {int(error): error for error in ErrorCode}


class WireClient:
    """One connection. Raises OSError when it breaks."""

    def __init__(
        self, port: int, timeout_seconds: float = 30.0, tls: ssl.SSLContext | None = None
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self._correlation_id = 0

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, api_key: int, version: int, message: Message) -> Message:
        """Send one request and wait for its response."""
        self._correlation_id += 1
        frame = encode_request(api_key, version, self._correlation_id, "bench", message)
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        answer = memoryview(self.receive(int.from_bytes(self.receive(4), "big")))
        api = APIS[api_key]
        _, position = decode_response_header(api, version, answer)
        response: Message = decode_at(api.response, version, answer, position)[0]
        return response

    def receive(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            count = self.socket.recv_into(view)
            if not count:
                raise ConnectionResetError("the server closed the connection")
            view = view[count:]
        return data

    def api_versions(self) -> ApiVersionsResponse:
        request = ApiVersionsRequest(client_software_name="bench", client_software_version="1")
        return cast("ApiVersionsResponse", self.request(18, API_VERSIONS_VERSION, request))

    def create_topic(self, topic: str, partitions: int, replication_factor: int = 1) -> ErrorCode:
        created = CreatableTopic(
            name=topic, num_partitions=partitions, replication_factor=replication_factor
        )
        request = CreateTopicsRequest(topics=[created])
        response = cast("CreateTopicsResponse", self.request(19, CREATE_TOPICS_VERSION, request))
        return ERRORS[response.topics[0].error_code]

    def partitions_with_leader(self, topic: str) -> int:
        """How many partitions of `topic` a client could write to."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        response = cast("MetadataResponse", self.request(3, METADATA_VERSION, request))
        partitions = response.topics[0].partitions
        return sum(not p.error_code and p.leader_id >= 0 for p in partitions)

    def produce(self, topic: str, value: bytes, partition: int = 0) -> ErrorCode:
        """One record, acknowledged by all."""
        record = Record(timestamp=time.time_ns() // 1_000_000, value=value)
        return self.produce_batch(topic, partition, encode_batch([record]))

    def produce_batch(self, topic: str, partition: int, records: Buffer) -> ErrorCode:
        """A batch that is encoded already, acknowledged by all."""
        data = TopicProduceData(
            name=topic, partition_data=[PartitionProduceData(index=partition, records=records)]
        )
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
        response = cast("ProduceResponse", self.request(0, PRODUCE_VERSION, request))
        return ERRORS[response.responses[0].partition_responses[0].error_code]

    def produce_to_each(self, places: set[tuple[str, int]]) -> None:
        """One record to each partition in one request; those that took it leave `places`."""
        batch = bytes(encode_batch([Record(timestamp=time.time_ns() // 1_000_000, value=b"first")]))
        topics: dict[str, list[PartitionProduceData]] = {}
        for name, index in sorted(places):
            topics.setdefault(name, []).append(PartitionProduceData(index=index, records=batch))
        data = [TopicProduceData(name=name, partition_data=each) for name, each in topics.items()]
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data)
        response = cast("ProduceResponse", self.request(0, PRODUCE_VERSION, request))
        for topic in response.responses:
            for partition in topic.partition_responses:
                if not partition.error_code:
                    places.discard((topic.name, partition.index))


def alter_config(port: int, resource_type: int, name: str, values: dict[str, str]) -> None:
    """Set configuration of a topic (2) or a group (32). Raises RuntimeError if it is refused."""
    configs = [
        AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()
    ]
    resource = AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=configs
    )
    with WireClient(port) as client:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        response = cast(
            "IncrementalAlterConfigsResponse", client.request(44, ALTER_CONFIGS_VERSION, request)
        )
    (answer,) = response.responses
    if answer.error_code:
        raise RuntimeError(f"{values} for {name}: {answer.error_message}")


def make_topic(
    port: int,
    topic: str,
    partitions: int,
    timeout_seconds: float = 60.0,
    replication_factor: int = 1,
) -> None:
    """Create a topic and wait until all its partitions lead. Raises TimeoutError."""
    deadline = time.monotonic() + timeout_seconds
    with WireClient(port) as client:
        while True:
            error = client.create_topic(topic, partitions, replication_factor)
            if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                break
            _pause(deadline, f"creating {topic}: {error.name}")
        while client.partitions_with_leader(topic) < partitions:
            _pause(deadline, f"{topic} has no leaders")


def produce_first(port: int, topic: str, timeout_seconds: float = 60.0) -> None:
    """Connect, create a topic and produce one record, however often that takes.

    Raises TimeoutError.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            make_topic(port, topic, 1, timeout_seconds)
            with WireClient(port) as client:
                while (error := client.produce(topic, b"first")) is not ErrorCode.NONE:
                    _pause(deadline, f"the first record: {error.name}")
            return
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            _pause(deadline, f"connecting: {error}")


def _pause(deadline: float, what: str) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(what)
    time.sleep(RETRY_SECONDS)


def pump(port: int, frame: bytes, requests: int) -> None:
    """Send a frame so many times, with up to `IN_FLIGHT` unanswered, and read all answers."""
    with WireClient(port) as client:
        for number in range(requests + IN_FLIGHT):
            if number < requests:
                client.socket.sendall(frame)
            if number >= IN_FLIGHT:
                client.receive(int.from_bytes(client.receive(4), "big"))
