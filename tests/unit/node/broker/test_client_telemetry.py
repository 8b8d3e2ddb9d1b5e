"""Who is to push what, and what becomes of what is pushed."""

from __future__ import annotations

import pytest

from barnabas.app.metrics.client_figures import family_name, pushed_metrics
from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.broker import client_telemetry
from barnabas.node.broker.client_telemetry import ClientFacts, ClientTelemetry
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.compression import compress
from barnabas.web.metrics import Exposition
from support.otlp import double, gauge, integer, metrics_data, total

ANN = Uuid(b"a" * 16)
FACTS = ClientFacts("app-1", "apache-kafka-java", "4.3.1", "10.0.0.9", 4711)
PUSHED = metrics_data(
    gauge("org.apache.kafka.producer.connection.count", double(2)),
    total("org.apache.kafka.producer.record.send.total", integer(10), 2, is_monotonic=True),
)


def configs(**subscriptions: dict[str, str]) -> ConfigsImage:
    kind = int(ConfigResourceType.CLIENT_METRICS)
    return ConfigsImage({(kind, name): values for name, values in subscriptions.items()})


ALL = configs(all={"metrics": "*", "interval.ms": "1000"})


def push(
    telemetry: ClientTelemetry,
    data: bytes = PUSHED,
    *,
    instance: Uuid = ANN,
    subscription: int | None = None,
    codec: int = Codec.NONE,
    wanted: ConfigsImage = ALL,
    now_ms: int = 0,
    is_last: bool = False,
) -> ErrorCode:
    if subscription is None:
        subscription = telemetry.subscribe(instance, FACTS, wanted, now_ms).id
    return telemetry.push(
        instance, subscription, codec, data, wanted, now_ms, is_terminating=is_last
    )


def shown(telemetry: ClientTelemetry, now_ms: int = 0) -> str:
    text = Exposition({})
    pushed_metrics(telemetry, now_ms)(text)
    return b"".join(text.parts()).decode()


@pytest.mark.parametrize(
    ("match", "is_picked"),
    [
        ("client_id=app-.*", True),
        ("client_id=app", False),
        ("client_software_name=apache-kafka-java,client_source_address=10\\..*", True),
        ("client_software_name=apache-kafka-java,client_source_address=11\\..*", False),
        ("client_source_port=4711, client_software_version=4.*", True),
        (f"client_instance_id={ANN.hex()}", True),
        ("", True),
    ],
)
def test_patterns_pick_clients(match: str, is_picked: bool) -> None:
    wanted = configs(some={"metrics": "org.apache.kafka.producer.", "match": match})
    found = ClientTelemetry(1000).subscribe(ANN, FACTS, wanted, 0)
    assert found.metrics == (("org.apache.kafka.producer.",) if is_picked else ())
    assert found.interval_ms == 300_000


def test_subscriptions_add_up_and_change_their_id() -> None:
    one = {"metrics": "a.,b.", "interval.ms": "60000"}
    two = {"metrics": "b.,c.", "interval.ms": "5000"}
    telemetry = ClientTelemetry(1000)
    first = telemetry.subscribe(ANN, FACTS, configs(one=one), 0)
    both = telemetry.subscribe(ANN, FACTS, configs(one=one, two=two), 0)
    assert both.metrics == ("a.", "b.", "c.")
    assert both.interval_ms == 5000
    assert first.id != both.id
    assert telemetry.subscribe(ANN, FACTS, configs(one=one), 0) == first


@pytest.mark.parametrize("codec", [*client_telemetry.ACCEPTED_CODECS, Codec.NONE])
def test_what_is_pushed_is_shown(codec: Codec) -> None:
    telemetry = ClientTelemetry(10_000)
    assert push(telemetry, compress(codec, PUSHED), codec=codec) is ErrorCode.NONE
    labels = 'client_id="app-1",client_instance_id="YWFhYWFhYWFhYWFhYWFhYQ",'
    labels = f'{{{labels}client_software_name="apache-kafka-java"}}'
    assert f"kafka_client_producer_connection_count{labels} 2.0\n" in shown(telemetry)
    assert f"kafka_client_producer_record_send_total{labels} 10\n" in shown(telemetry)


def test_deltas_are_added_up() -> None:
    telemetry = ClientTelemetry(10_000)
    for _ in range(3):
        assert push(telemetry, metrics_data(total("x", integer(4), 1, is_monotonic=True))) == 0
    assert "} 12.0\n" in shown(telemetry)


def test_refusals() -> None:
    telemetry = ClientTelemetry(2 * len(PUSHED))
    assert push(telemetry, subscription=1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert push(telemetry, instance=ZERO_UUID) is ErrorCode.INVALID_REQUEST
    known = telemetry.subscribe(ANN, FACTS, ALL, 0).id
    assert push(telemetry, subscription=known + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    other = configs(all={"metrics": "x"})
    assert push(telemetry, subscription=known, wanted=other) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert push(telemetry, codec=9) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert push(telemetry, PUSHED * 3) is ErrorCode.TELEMETRY_TOO_LARGE
    assert push(telemetry, b"\x07") is ErrorCode.INVALID_RECORD
    assert push(telemetry, b"no gzip", codec=Codec.GZIP) is ErrorCode.INVALID_RECORD
    bomb = compress(Codec.GZIP, bytes(1000 * len(PUSHED)))
    assert push(telemetry, bomb[: 2 * len(PUSHED)], codec=Codec.GZIP) is ErrorCode.INVALID_RECORD
    assert push(telemetry, is_last=True) is ErrorCode.NONE
    assert push(telemetry) is ErrorCode.INVALID_REQUEST
    assert push(telemetry, instance=Uuid(b"b" * 16)) is ErrorCode.NONE


def test_a_client_that_is_silent_is_forgotten() -> None:
    telemetry = ClientTelemetry(10_000)
    push(telemetry, now_ms=0)
    assert "connection_count" in shown(telemetry, 3000)
    assert shown(telemetry, 3001) == ""
    assert push(telemetry, subscription=1, now_ms=4000) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID


def test_clients_and_what_they_push_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "INSTANCES_MAX", 3)
    monkeypatch.setattr(client_telemetry, "SERIES_MAX", 2)
    telemetry = ClientTelemetry(10_000)
    many = metrics_data(*[gauge(f"m{number}", double(1)) for number in range(9)])
    for number in range(10):
        push(telemetry, many, instance=Uuid(bytes([65 + number]) * 16))
    assert shown(telemetry).count("} 1.0\n") == 3 * 2


@pytest.mark.parametrize(
    ("name", "is_counter", "expected"),
    [
        ("org.apache.kafka.consumer.poll.idle.ratio.avg", False, "consumer_poll_idle_ratio_avg"),
        ("org.apache.kafka.producer.record.send.total", True, "producer_record_send_total"),
        ("librdkafka.x-y", True, "librdkafka_x_y_total"),
    ],
)
def test_names_of_prometheus(name: str, is_counter: bool, expected: str) -> None:
    assert family_name(name, is_counter=is_counter) == f"kafka_client_{expected}"


def test_labels_that_inject_lines_are_escaped() -> None:
    telemetry = ClientTelemetry(10_000)
    evil = ClientFacts('x"} 1\nup 0', "", "", "h", 1)
    found = telemetry.subscribe(ANN, evil, ALL, 0)
    telemetry.push(ANN, found.id, 0, PUSHED, ALL, 0, is_terminating=False)
    assert all(line.startswith(("#", "kafka_client_")) for line in shown(telemetry).splitlines())
