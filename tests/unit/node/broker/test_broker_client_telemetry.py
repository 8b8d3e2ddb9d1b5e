"""Client telemetry (KIP-714): subscriptions, and the node's handling of pushed metrics."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.app.metrics.catalog import FAMILIES
from barnabas.app.metrics.client_figures import family_name, pushed_metrics
from barnabas.base.ids import ZERO_UUID, Uuid, uuid_to_text
from barnabas.node.broker import client_telemetry
from barnabas.node.broker.client_telemetry import (
    ATTRIBUTES_MAX,
    TEXT_MAX,
    ClientFacts,
    ClientTelemetry,
    subscription_of,
)
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.telemetry import PushTelemetryRequest
from barnabas.protocol.records.batch import Codec, CorruptBatchError
from barnabas.protocol.records.compression import compress
from barnabas.web.metrics import Exposition
from support.otlp import attribute, double, gauge, integer, metrics_data, total

ANN = Uuid(b"a" * 16)
FACTS = ClientFacts("app-1", "apache-kafka-java", "4.3.1", "10.0.0.9", 4711)
LABELS = (
    '{client_id="app-1",client_instance_id="YWFhYWFhYWFhYWFhYWFhYQ",'
    'client_software_name="apache-kafka-java"}'
)
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
    facts: ClientFacts = FACTS,
) -> ErrorCode:
    """Push as the handler does it; by default with the right subscription."""
    if subscription is None:
        subscription = subscription_of(instance, facts, wanted).id
    request = PushTelemetryRequest(
        client_instance_id=instance,
        subscription_id=subscription,
        terminating=is_last,
        compression_type=codec,
        metrics=data,
    )
    error = telemetry.check(instance, facts, request, wanted, now_ms)
    if error is ErrorCode.NONE:
        try:
            points = asyncio.run(telemetry.read(codec, data))
        except (DecodeError, CorruptBatchError):
            telemetry.refuse(instance, ErrorCode.INVALID_RECORD)
            return ErrorCode.INVALID_RECORD
        telemetry.take(instance, points)
    return error


def shown(telemetry: ClientTelemetry, now_ms: int = 0) -> str:
    text = Exposition(FAMILIES)
    pushed_metrics(telemetry, now_ms)(text)
    lines = b"".join(text.parts()).decode().splitlines(keepends=True)
    return "".join(line for line in lines if "barnabas_client_telemetry" not in line)


@pytest.mark.parametrize(
    ("match", "is_picked"),
    [
        ("client_id=app-.*", True),
        ("client_id=app", False),
        ("client_software_name=apache-kafka-java,client_source_address=10\\..*", True),
        ("client_software_name=apache-kafka-java,client_source_address=11\\..*", False),
        ("client_source_port=4711, client_software_version=4.*", True),
        (f"client_instance_id={uuid_to_text(ANN)}", True),
        ("", True),
    ],
)
def test_patterns_pick_clients(match: str, is_picked: bool) -> None:
    wanted = configs(some={"metrics": "org.apache.kafka.producer.", "match": match})
    found = ClientTelemetry(1000).subscribe(ANN, FACTS, wanted, 0)
    assert found is not None
    assert found.metrics == (("org.apache.kafka.producer.",) if is_picked else ())
    assert found.interval_ms == 300_000


def test_subscriptions_add_up_and_change_their_id() -> None:
    one = {"metrics": "a.,b.", "interval.ms": "60000"}
    two = {"metrics": "b.,c.", "interval.ms": "5000"}
    telemetry = ClientTelemetry(1000)
    first = telemetry.subscribe(ANN, FACTS, configs(one=one), 0)
    both = telemetry.subscribe(ANN, FACTS, configs(one=one, two=two), 0)
    assert first is not None
    assert both is not None
    assert both.metrics == ("a.", "b.", "c.")
    assert both.interval_ms == 5000
    assert first.id != both.id
    assert telemetry.subscribe(ANN, FACTS, configs(one=one), 0) == first


@pytest.mark.parametrize("codec", [*client_telemetry.ACCEPTED_CODECS, Codec.NONE])
def test_what_is_pushed_is_shown(codec: Codec) -> None:
    telemetry = ClientTelemetry(10_000)
    assert push(telemetry, compress(codec, PUSHED), codec=codec) is ErrorCode.NONE
    assert f"kafka_client_producer_connection_count{LABELS} 2.0\n" in shown(telemetry)
    assert f"kafka_client_producer_record_send_total{LABELS} 10\n" in shown(telemetry)


def test_deltas_are_added_up() -> None:
    telemetry = ClientTelemetry(10_000)
    data = metrics_data(total("x", integer(4), 1, is_monotonic=True))
    for number in range(3):
        assert push(telemetry, data, now_ms=number * 1000) is ErrorCode.NONE
    assert "} 12.0\n" in shown(telemetry)


def test_a_push_replaces_the_one_before() -> None:
    telemetry = ClientTelemetry(10_000)
    assert push(telemetry) is ErrorCode.NONE
    assert push(telemetry, metrics_data(gauge("y", double(1))), now_ms=1000) is ErrorCode.NONE
    assert [line for line in shown(telemetry).splitlines() if line[0] != "#"] == [
        f"kafka_client_y{LABELS} 1.0"
    ]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"instance": ZERO_UUID}, ErrorCode.INVALID_REQUEST),
        ({"instance": Uuid(bytes(15) + b"\x01")}, ErrorCode.INVALID_REQUEST),
        ({"subscription": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"codec": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"codec": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"data": PUSHED * 3}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"data": b"\x07"}, ErrorCode.INVALID_RECORD),
        ({"data": b"no gzip", "codec": Codec.GZIP}, ErrorCode.INVALID_RECORD),
        (
            {"data": compress(Codec.ZSTD, bytes(33 * len(PUSHED))), "codec": Codec.ZSTD},
            ErrorCode.INVALID_RECORD,
        ),
        ({}, ErrorCode.NONE),
    ],
)
def test_refusals(asked: dict[str, Any], expected: ErrorCode) -> None:
    assert push(ClientTelemetry(2 * len(PUSHED)), **asked) is expected


def test_a_changed_configuration_makes_a_subscription_unknown() -> None:
    telemetry = ClientTelemetry(10_000)
    old = subscription_of(ANN, FACTS, ALL).id
    assert push(telemetry) is ErrorCode.NONE
    other = configs(all={"metrics": "x", "interval.ms": "1000"})
    unknown = push(telemetry, subscription=old, wanted=other, now_ms=1000)
    assert unknown is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert telemetry.subscribe(ANN, FACTS, other, 1001) is not None  # it need not wait
    assert push(telemetry, wanted=other, now_ms=2000) is ErrorCode.NONE


def test_a_node_takes_the_push_of_a_client_that_asked_another_node() -> None:
    asked = ClientTelemetry(10_000).subscribe(ANN, FACTS, ALL, 0)
    assert asked is not None
    other_node = ClientTelemetry(10_000)
    same_settings = configs(all={"interval.ms": "1000", "metrics": "*"})
    assert push(other_node, subscription=asked.id, wanted=same_settings) is ErrorCode.NONE


def test_clients_that_come_too_early_are_throttled() -> None:
    telemetry = ClientTelemetry(10_000)
    assert telemetry.subscribe(ANN, FACTS, ALL, 0) is not None
    assert telemetry.subscribe(ANN, FACTS, ALL, 999) is None
    assert push(telemetry, now_ms=500) is ErrorCode.NONE  # one for each question
    assert push(telemetry, now_ms=1499) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert telemetry.subscribe(ANN, FACTS, ALL, 1499) is None
    assert push(telemetry, now_ms=1500) is ErrorCode.NONE
    assert push(telemetry, codec=9, now_ms=2500) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert telemetry.subscribe(ANN, FACTS, ALL, 2501) is not None
    assert push(telemetry, now_ms=2502, is_last=True) is ErrorCode.NONE


def test_the_last_push_may_come_early_and_none_follows() -> None:
    telemetry = ClientTelemetry(10_000)
    assert push(telemetry, now_ms=0) is ErrorCode.NONE
    assert push(telemetry, now_ms=1, is_last=True) is ErrorCode.NONE
    assert push(telemetry, now_ms=5000) is ErrorCode.INVALID_REQUEST
    assert push(telemetry, now_ms=5000, instance=Uuid(b"b" * 16)) is ErrorCode.NONE


def test_a_client_that_is_silent_is_forgotten() -> None:
    telemetry = ClientTelemetry(10_000)
    push(telemetry, now_ms=0)
    assert "connection_count" in shown(telemetry, 60_000)
    assert shown(telemetry, 60_001) == ""
    assert len(telemetry) == 0


def test_clients_and_what_they_push_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_telemetry, "INSTANCES_MAX", 3)
    monkeypatch.setattr(client_telemetry, "SERIES_MAX", 3)
    monkeypatch.setattr(client_telemetry, "ALL_SERIES_MAX", 8)
    telemetry = ClientTelemetry(10_000)
    many = metrics_data(*[gauge(f"m{number}", double(1)) for number in range(9)])
    for number in range(10):
        push(telemetry, many, instance=Uuid(bytes([65 + number]) * 16))
    assert len(telemetry) == 3
    assert shown(telemetry).count("} 1.0\n") == 8
    assert telemetry.dropped_series == 10 * 9 - (7 * 3 + 3 * 2)


def test_texts_and_attributes_are_bounded() -> None:
    telemetry = ClientTelemetry(1_000_000)
    point = double(1) + b"".join(attribute(f"{n}-" + "k" * 999, "v" * 9999) for n in range(20))
    assert push(telemetry, metrics_data(gauge("n" * 9999, point))) is ErrorCode.NONE
    ((_, instance),) = telemetry.items(0)
    ((name, attributes),) = instance.gauges
    assert len(name) == TEXT_MAX
    assert len(attributes) == ATTRIBUTES_MAX
    assert all(len(key) == len(value) == TEXT_MAX for key, value in attributes)


@pytest.mark.parametrize("key", ["", "-", "__name__", "-1a", "9", "a b", "é", 'x"} 1'])
def test_any_attribute_is_a_label_that_prometheus_reads(key: str) -> None:
    telemetry = ClientTelemetry(100_000)
    push(telemetry, metrics_data(gauge("m", double(1) + attribute(key, 'v"\n\\'))))
    ((family),) = text_string_to_metric_families(shown(telemetry))
    ((sample),) = family.samples
    assert sample.value == 1
    assert all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", label) for label in sample.labels)
    assert "__name__" not in sample.labels


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
    assert push(telemetry, facts=evil) is ErrorCode.NONE
    assert all(line.startswith(("#", "kafka_client_")) for line in shown(telemetry).splitlines())
