"""Clients above their quotas: what they are told, and for how long nothing is read from them."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from struct import pack
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.base.network import ListenerOptions, Part
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.dispatch import Dispatcher
from barnabas.node.broker.responses import respond
from barnabas.node.broker.route import Answer, raw_route, route
from barnabas.node.broker.throttling import (
    EXEMPT,
    EXEMPT_AT_CONTROLLER,
    Throttling,
    with_throttle_time,
)
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.security.principal import ANONYMOUS, Principal
from barnabas.node.security.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.protocol import apis
from barnabas.protocol.api import ApiKey
from barnabas.protocol.apis import APIS, AnyApi
from barnabas.protocol.codec import decode_at
from barnabas.protocol.frames import decode_response_header, encode_request
from barnabas.protocol.messages.connections import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.messages.produce import (
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.messages.topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.transactions import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from sim.manual_clock import ManualClock

ANY_USER = (("user", None),)
PRODUCE_VERSION = 12
SECOND_NS = 1_000_000_000


class Broker:
    """A dispatcher whose handlers do what the test says, and one connection to it."""

    def __init__(self, exempt: Collection[ApiKey] = EXEMPT, **limits: float) -> None:
        self.clock = ManualClock()
        self.busy_ns = 0
        self.took_ns = 0
        self.late: list[Reply] = []
        self.is_late = False
        self.handled = 0
        self.is_enabled = True
        self.is_node = True
        self.told_ms = 0
        self.quotas = ClientQuotas(QuotaWindows())
        self.quotas.configure({ANY_USER: limits})
        services: Any = SimpleNamespace(served_apis=set())
        self.dispatcher: Dispatcher[Any] = Dispatcher(
            services,
            (
                raw_route(apis.PRODUCE, self._produce),
                route(apis.HEARTBEAT, self._heartbeat),
                route(apis.CREATE_TOPICS, self._create_topics),
                route(apis.METADATA, self._metadata),
                route(apis.WRITE_TXN_MARKERS, self._write_markers),
                route(apis.FETCH, self._fetch),
            ),
        )
        authorizer: Any = self
        self.dispatcher.throttling = Throttling(
            self.quotas, self.clock, lambda: self.busy_ns, authorizer, exempt
        )
        self.sent = bytearray()
        self.answered = asyncio.Event()
        self.is_reading = True
        transport: Any = SimpleNamespace(
            times=None,
            peer_host="client",
            send=self._send,
            unsent_bytes=lambda: 0,
            pause_reading=lambda: setattr(self, "is_reading", False),
            resume_reading=lambda: setattr(self, "is_reading", True),
            close=self._close,
        )
        self.connection = Connection(
            transport, self.dispatcher, ListenerOptions("PLAINTEXT"), lambda _: None
        )

    def _produce(
        self, services: object, context: RequestContext, frame: bytearray, position: int
    ) -> Answer:
        self._work()
        answer = respond(context, ProduceResponse(responses=[]))
        if self.is_late:
            self.late.append(Reply())
            return self.late[-1]
        return answer if frame[-1:] != b"0" else ()

    def _heartbeat(
        self, services: object, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse:
        self._work()
        return HeartbeatResponse()

    def _create_topics(
        self, services: object, context: RequestContext, request: CreateTopicsRequest
    ) -> CreateTopicsResponse:
        self._work()
        return CreateTopicsResponse(throttle_time_ms=self.told_ms)

    def _write_markers(
        self, services: object, context: RequestContext, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse:
        self._work()
        return WriteTxnMarkersResponse()

    def _fetch(
        self, services: object, context: RequestContext, request: FetchRequest
    ) -> FetchResponse:
        self._work()
        throttling = self.dispatcher.throttling
        assert throttling is not None
        assert throttling.fetched(context, 100, is_follower=request.replica_id >= 0)
        return FetchResponse()

    async def _metadata(
        self, services: object, context: RequestContext, request: MetadataRequest
    ) -> MetadataResponse:
        self._work()
        asyncio.get_running_loop().call_soon(self._serve_others)
        await asyncio.sleep(0)
        self._work()
        return MetadataResponse()

    def allows(self, *_: object, **__: object) -> bool:
        """Part of an authorizer, which knows one right."""
        return self.is_node

    def _serve_others(self) -> None:
        self.busy_ns += 100 * SECOND_NS

    def _work(self) -> None:
        self.handled += 1
        self.busy_ns += self.took_ns

    def _send(self, parts: Sequence[Part]) -> None:
        for part in parts:
            assert isinstance(part, bytes | bytearray | memoryview)
            self.sent += part
        self.answered.set()

    def _close(self) -> None:
        self.connection.closed(None)

    def receive(self, frame: bytes) -> None:
        data = pack(">i", len(frame)) + frame
        self.connection.get_buffer()[: len(data)] = data
        self.connection.received(len(data))

    def produce(self, size_bytes: int, *, acks: int = 1) -> None:
        """A produce request of so many bytes; its body is not looked at."""
        head = encode_request(
            ApiKey.PRODUCE, PRODUCE_VERSION, 1, "app", ProduceRequest(topic_data=[])
        )
        self.receive(head.ljust(size_bytes - 1, b"x") + (b"1" if acks else b"0"))

    def told(self, api: AnyApi, version: int) -> int:
        """The throttle time of the one answer that has come."""
        frame = bytes(self.sent[4:])
        assert int.from_bytes(self.sent[:4], "big") == len(frame)
        self.sent.clear()
        _, position = decode_response_header(api, version, frame)
        response, end = decode_at(api.response, version, frame, position)
        assert end == len(frame)
        told_ms: int = response.throttle_time_ms
        return told_ms


def test_who_keeps_to_the_quota_is_not_held_up() -> None:
    broker = Broker(producer_byte_rate=100)
    broker.produce(1000)  # ten seconds' worth
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 0
    assert broker.is_reading


def test_who_is_above_it_is_answered_at_once_and_then_held_up() -> None:
    broker = Broker(producer_byte_rate=100)
    broker.produce(1500)
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 5000
    assert not broker.is_reading
    broker.produce(200)
    broker.clock.advance(4999)
    assert broker.handled == 1
    broker.clock.advance(1)
    assert broker.handled == 2


def test_without_acknowledgements_it_is_held_up_too() -> None:
    broker = Broker(producer_byte_rate=100, request_percentage=1)
    broker.took_ns = (
        60 * SECOND_NS
    )  # which counts for nobody: such requests are exempt, as in Kafka
    broker.produce(1500, acks=0)
    assert not broker.sent
    broker.clock.advance(4999)
    assert not broker.is_reading
    broker.clock.advance(1)
    assert broker.is_reading


def test_a_late_answer_is_charged_when_it_is_there() -> None:
    broker = Broker(producer_byte_rate=100)
    broker.is_late = True
    broker.produce(1500)
    assert broker.is_reading
    context = RequestContext(
        ApiKey.PRODUCE, PRODUCE_VERSION, 1, "app", broker.connection, ANONYMOUS
    )
    broker.late[0].complete(respond(context, ProduceResponse(responses=[])))
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 5000
    assert not broker.is_reading


def test_time_counts_and_the_longer_wait_holds() -> None:
    broker = Broker(producer_byte_rate=100, request_percentage=10)
    broker.took_ns = SECOND_NS  # 100 % of a second; 10 % of ten seconds are granted
    broker.produce(100)
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 0
    broker.produce(100)
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 1000  # at most a sample's length
    broker.clock.advance(1000)
    broker.produce(1500)
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) > 5000


def test_any_request_takes_time() -> None:
    broker = Broker(request_percentage=1)
    broker.took_ns = 3 * SECOND_NS
    broker.receive(encode_request(ApiKey.HEARTBEAT, 4, 1, "app", HeartbeatRequest()))
    assert broker.told(apis.HEARTBEAT, 4) == 1000
    assert not broker.is_reading


async def test_time_after_a_wait_counts_and_that_of_others_does_not() -> None:
    broker = Broker(request_percentage=10)  # of ten seconds: 100 % of one
    broker.took_ns = SECOND_NS // 2 + 1_000_000
    broker.receive(encode_request(ApiKey.METADATA, 12, 1, "app", MetadataRequest()))
    await broker.answered.wait()
    assert broker.handled == 2
    figures = {figure.name: figure.value for figure in broker.quotas.figures(broker.clock.time_ms)}
    assert figures["request-time"] == pytest.approx(10.02)
    assert 0 < broker.told(apis.METADATA, 12) < 100


@pytest.mark.parametrize("exempt", [EXEMPT, EXEMPT_AT_CONTROLLER])
def test_nodes_that_fetch_metadata_are_not_held_up(exempt: Collection[ApiKey]) -> None:
    broker = Broker(exempt, request_percentage=1)
    broker.took_ns = 3 * SECOND_NS
    broker.receive(encode_request(ApiKey.FETCH, 17, 1, "node", FetchRequest()))
    is_exempt = ApiKey.FETCH in exempt
    assert broker.is_reading is is_exempt
    assert (broker.told(apis.FETCH, 17) == 0) is is_exempt


def test_versions_that_cannot_tell_are_held_up_all_the_same() -> None:
    broker = Broker(request_percentage=1)
    broker.took_ns = 3 * SECOND_NS
    broker.receive(encode_request(ApiKey.HEARTBEAT, 0, 1, "app", HeartbeatRequest()))
    assert broker.sent
    assert not broker.is_reading


def test_what_nodes_ask_each_other_counts_apart_and_what_they_did_not_ask_does_not() -> None:
    broker = Broker(request_percentage=1)
    broker.took_ns = 3 * SECOND_NS
    frame = encode_request(ApiKey.WRITE_TXN_MARKERS, 1, 1, "node", WriteTxnMarkersRequest())
    broker.receive(frame)
    assert broker.is_reading
    told = {figure.name: figure.value for figure in broker.quotas.figures(broker.clock.time_ms)}
    assert told["exempt-request-time"] == pytest.approx(30)
    broker.is_node = False
    broker.receive(frame)
    assert not broker.is_reading


@pytest.mark.parametrize("is_node", [True, False])
def test_to_fetch_as_a_follower_is_free_for_nodes_alone(is_node: bool) -> None:
    broker = Broker(request_percentage=1)
    broker.is_node = is_node
    broker.took_ns = 3 * SECOND_NS
    broker.receive(encode_request(ApiKey.FETCH, 12, 1, "app", FetchRequest(replica_id=2)))
    assert broker.is_reading is is_node


def test_what_the_controller_says_holds_here() -> None:
    broker = Broker(controller_mutation_rate=1)
    broker.told_ms = 700
    broker.receive(encode_request(ApiKey.CREATE_TOPICS, 7, 1, "app", CreateTopicsRequest()))
    assert broker.told(apis.CREATE_TOPICS, 7) == 700
    broker.clock.advance(699)
    assert not broker.is_reading
    broker.clock.advance(1)
    assert broker.is_reading


def test_each_user_has_a_quota_of_its_own() -> None:
    broker = Broker(producer_byte_rate=100)
    broker.produce(1500)
    broker.told(apis.PRODUCE, PRODUCE_VERSION)
    broker.clock.advance(5000)
    client_state(broker.connection).authenticated(Principal("User", "alice"))
    broker.produce(1000)
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 0
    figures = {
        (figure.tags["user"], figure.name): figure.value
        for figure in broker.quotas.figures(broker.clock.monotonic_ms())
        if figure.kind == "Produce"
    }
    assert figures["ANONYMOUS", "throttle-time"] == 5000
    assert figures["alice", "byte-rate"] == pytest.approx(100)
    assert figures["alice", "throttle-time"] == 0


def test_requests_that_repeat_themselves_are_charged_one_by_one() -> None:
    broker = Broker(producer_byte_rate=100)
    asked: list[bool] = []

    def answer(connection: Connection, frame: bytearray, *, alone: bool) -> Sequence[Part]:
        asked.append(alone)
        context = RequestContext(ApiKey.PRODUCE, 12, 1, "app", connection, ANONYMOUS)
        return respond(context, ProduceResponse(responses=[]))

    client_state(broker.connection).repeated = SimpleNamespace(answer=answer)  # type: ignore[assignment]  # a fake
    broker.produce(600)
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 0
    broker.produce(600)
    assert broker.told(apis.PRODUCE, PRODUCE_VERSION) == 2000
    assert asked == [True, True]


def _answers() -> list[tuple[AnyApi, int]]:
    return [
        (api, version)
        for api in APIS.values()
        for version in range(api.min_version, api.max_version + 1)
        if any(
            field.name == "throttle_time_ms" and field.versions.covers(version)
            for field in api.response.SCHEMA.fields
        )
    ]


def context_of(api: AnyApi, version: int) -> RequestContext:
    connection: Any = SimpleNamespace(times=None, peer_host="client", listener_name="PLAINTEXT")
    return RequestContext(api.key, version, 7, "app", connection, ANONYMOUS)


def in_pieces(parts: Sequence[Any]) -> list[bytes]:
    """As an answer may leave: cut where it does not matter."""
    frame = b"".join(parts)
    return [frame[:5], frame[5:9], frame[9:10], frame[10:]]


@pytest.mark.parametrize("cut", [list, in_pieces])
def test_every_answer_that_can_tells_the_time(cut: Callable[[Sequence[Any]], list[Any]]) -> None:
    for api, version in _answers():
        context = context_of(api, version)
        parts = cut(respond(context, api.response()))
        told = with_throttle_time(context, parts, 1234)
        expected = respond(context, api.response(throttle_time_ms=1234))
        assert b"".join(told) == b"".join(expected), (api.key.name, version)  # type: ignore[arg-type]


def test_answers_that_tell_it_late_keep_what_else_they_say() -> None:
    endpoint = NodeEndpoint(node_id=3, host="h", port=1, rack=None)
    produced = ProduceResponse(
        responses=[
            TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse(index=2)])
        ],
        node_endpoints=[endpoint],
    )
    versions = ApiVersionsResponse(api_keys=[ApiVersion(api_key=1, min_version=2, max_version=3)])
    for api, version, response in (
        (apis.PRODUCE, 12, produced),
        (apis.API_VERSIONS, 4, versions),
    ):
        context = context_of(api, version)
        told = with_throttle_time(context, respond(context, response), 99)
        response.throttle_time_ms = 99  # type: ignore[attr-defined]  # both have it
        assert b"".join(told) == b"".join(respond(context, response))  # type: ignore[arg-type]
