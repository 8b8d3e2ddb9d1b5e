"""`barnabas produce` and `consume` with the schemas of a registry, and with other clients."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from barnabas.app.testing import Kafka
from support.cli import ClusterCli, Result
from support.registry_process import registry_url

__all__ = ["registry_url"]

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 5}},
    ],
}
ORDER_TEXT = '{"id": 7, "note": {"string": "é"}, "at": 12, "price": "\\u0001"}'
SCHEMA = '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'
MONEY = 'syntax = "proto3";\npackage shop;\nmessage Money {\n  string currency = 1;\n}\n'
PAYMENT = """syntax = "proto3";
package shop;
import "money.proto";
import "google/protobuf/timestamp.proto";
message Payment {
  Money sum = 1;
  google.protobuf.Timestamp paid_at = 2;
  int64 number = 3;
}
"""


@pytest.fixture
def cli(kafka: Kafka) -> ClusterCli:
    return ClusterCli(kafka.bootstrap_servers)


@pytest.fixture
def with_registry(cli: ClusterCli, registry_url: str) -> Callable[..., Result]:
    """A command that knows the registry and must succeed."""
    return lambda *arguments, **more: cli.ok(
        *arguments, "--schema-registry-url", registry_url, **more
    )


def written(directory: Path, name: str, text: Any) -> str:
    file = directory / name
    file.write_text(text if isinstance(text, str) else json.dumps(text))
    return str(file)


def test_avro(kafka: Kafka, with_registry: Callable[..., Result], tmp_path: Path) -> None:
    topic, copy = kafka.topic(), kafka.topic()
    file = written(tmp_path, "order.avsc", ORDER)
    plain = '{"id": 8, "note": "untagged", "price": "\\u0002"}'
    with_registry("produce", topic, "-v", ORDER_TEXT, "-v", plain, "--value-schema", file)
    shown = with_registry("consume", topic, "--value-format", "avro").lines
    assert shown == [
        ORDER_TEXT,
        '{"id": 8, "note": {"string": "untagged"}, "at": 0, "price": "\\u0002"}',
    ]
    record = with_registry("consume", topic, "--value-format", "registry", "-n", "1", "--json")
    assert record.json["value"]["note"] == {"string": "é"}
    # The shown output can be sent again, and gives the same bytes.
    stdin = "".join(f"{line}\n" for line in shown).encode()
    number = kafka.consume(topic, 1)[0]
    assert number is not None
    schema_id = str(int.from_bytes(number[1:5], "big"))
    with_registry("produce", copy, "--value-schema-id", schema_id, stdin=stdin)
    assert kafka.consume(copy, 2) == kafka.consume(topic, 2)


def test_json_schema_and_keys(
    kafka: Kafka, cli: ClusterCli, with_registry: Callable[..., Result], tmp_path: Path
) -> None:
    topic = kafka.topic()
    value, key = written(tmp_path, "v.json", SCHEMA), written(tmp_path, "k.avsc", '"string"')
    arguments = ("produce", topic, "--value-schema", value, "--key-schema", key)
    with_registry(*arguments, "-k", '"é"', "-v", '{"id": 1}', "-v", "", "--tombstones")
    formats = ("--value-format", "json-schema", "--key-format", "avro")
    shown = with_registry("consume", topic, *formats, "--keys").lines
    assert shown == ['"é"\t{"id": 1}', '"é"\t']
    template = with_registry("consume", topic, *formats, "-t", "{key}: {value}").lines
    assert template[0] == '"é": {"id": 1}'


def test_protobuf_with_references(
    kafka: Kafka, with_registry: Callable[..., Result], registry_url: str
) -> None:
    topic = kafka.topic()
    with SchemaRegistryClient({"url": registry_url}) as client:
        client.register_schema("money", Schema(MONEY, "PROTOBUF"))
        references = [SchemaReference("money.proto", "money", 1)]
        payment = Schema(PAYMENT, "PROTOBUF", references)
        number = client.register_schema(f"{topic}-value", payment)
    text = '{"sum": {"currency": "EUR"}, "paidAt": "2026-01-31T12:00:00Z", "number": "0"}'
    with_registry("produce", topic, "-v", text, "--value-schema-id", str(number))
    assert with_registry("consume", topic, "--value-format", "protobuf").lines == [text]


def test_other_clients(
    kafka: Kafka, with_registry: Callable[..., Result], registry_url: str, tmp_path: Path
) -> None:
    topic = kafka.topic()
    context = SerializationContext(topic, MessageField.VALUE, [])
    producer = kafka.producer()
    with SchemaRegistryClient({"url": registry_url}) as client:
        schema = '{"type":"record","name":"A","fields":[{"name":"n","type":"string"}]}'
        prefixed = AvroSerializer(client, schema)
        in_header = AvroSerializer(
            client, schema, conf={"schema.id.serializer": header_schema_id_serializer}
        )
        producer.produce(topic, prefixed({"n": "first"}, context))
        value = in_header({"n": "second"}, context)
        producer.produce(topic, value, headers=context.headers)
        producer.flush()
        with_registry(
            *("produce", topic, "-v", '{"n": "third"}'),
            *("--value-schema", written(tmp_path, "a.avsc", schema)),
        )
        last = kafka.consume(topic, 3)[2]
        plain = SerializationContext(topic, MessageField.VALUE)
        assert AvroDeserializer(client)(last, plain) == {"n": "third"}
    shown = with_registry("consume", topic, "--value-format", "registry").lines
    assert shown == ['{"n": "first"}', '{"n": "second"}', '{"n": "third"}']


def test_messages_inside_others(
    kafka: Kafka, with_registry: Callable[..., Result], registry_url: str
) -> None:
    topic = kafka.topic()
    text = 'syntax = "proto3"; message A { message B { int32 n = 1; } } message C { A a = 1; }'
    with SchemaRegistryClient({"url": registry_url}) as client:
        number = client.register_schema(f"{topic}-value", Schema(text, "PROTOBUF"))
    framed = io.BytesIO()
    framed.write(b"\0" + number.to_bytes(4, "big") + b"\x04\x00\x00" + b"\x08\x05")
    producer = kafka.producer()
    producer.produce(topic, framed.getvalue())
    producer.flush()
    assert with_registry("consume", topic, "--value-format", "protobuf").lines == ['{"n": 5}']


def test_a_schema_with_rules_that_nothing_runs_is_refused(
    kafka: Kafka, cli: ClusterCli, registry_url: str
) -> None:
    """A field that should be encrypted must not be sent in plain text."""
    topic = kafka.topic()
    encrypt = Rule(
        name="card",
        doc=None,
        kind=RuleKind.TRANSFORM,
        mode=RuleMode.WRITEREAD,
        type="ENCRYPT",
        tags=["PII"],
        params=None,
        expr=None,
        on_success=None,
        on_failure=None,
        disabled=False,
    )
    rules = RuleSet(domain_rules=[encrypt], migration_rules=[])
    with SchemaRegistryClient({"url": registry_url}) as client:
        schema = Schema(json.dumps(ORDER), "AVRO", rule_set=rules)
        number = client.register_schema(f"{topic}-value", schema)
    arguments = ("produce", topic, "-v", ORDER_TEXT, "--value-schema-id", str(number))
    result = cli.run(*arguments, "--schema-registry-url", registry_url)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "Could not find rule executor of type ENCRYPT" in result.err


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("{", "the value is not JSON"),
        ('{"id": "x", "price": ""}', "id must be a whole number"),
        ('{"price": ""}', "id is missing"),
        ('{"id": 1, "price": "", "other": 1}', "it has no field 'other' in the schema"),
        ('{"id": 1, "price": "€"}', "price has a character that is not a byte"),
    ],
)
def test_values_that_do_not_fit_are_one_line(
    kafka: Kafka, cli: ClusterCli, registry_url: str, tmp_path: Path, value: str, said: str
) -> None:
    file = written(tmp_path, "order.avsc", ORDER)
    arguments = ("produce", kafka.topic(), "-v", value, "--value-schema", file)
    result = cli.run(*arguments, "--schema-registry-url", registry_url)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert said in result.err


def test_records_that_cannot_be_shown_are_one_line(
    kafka: Kafka, cli: ClusterCli, registry_url: str, tmp_path: Path
) -> None:
    def refused(*values: bytes, form: str = "registry") -> str:
        topic = kafka.topic()
        producer = kafka.producer()
        for value in values:
            producer.produce(topic, value)
        producer.flush()
        arguments = ("consume", topic, "--value-format", form)
        result = cli.run(*arguments, "--schema-registry-url", registry_url)
        assert result.err.count("\n") == 1
        assert result.code != 0
        assert f"{topic}-0, offset 0: " in result.err
        return result.err

    assert "the value names no schema" in refused(b"text")
    assert "the value names no schema" in refused(b"")
    assert "[40403]" in refused(b"\0\x7f\xff\xff\xff")
    topic = kafka.topic()
    file = written(tmp_path, "order.avsc", ORDER)
    arguments = ("produce", topic, "-v", ORDER_TEXT, "--value-schema", file)
    cli.ok(*arguments, "--schema-registry-url", registry_url)
    good = kafka.consume(topic, 1)[0]
    assert good is not None
    assert "does not fit schema" in refused(good[:7])
    assert "is of type AVRO" in refused(good, form="protobuf")


def test_a_registry_that_is_away_and_wrong_flags(kafka: Kafka, cli: ClusterCli) -> None:
    dead = "http://127.0.0.1:1"
    topic = kafka.topic()
    sent = cli.run(
        "produce", topic, "-v", "1", "--value-schema-id", "1", "--schema-registry-url", dead
    )
    assert (sent.code, sent.err.count("\n")) == (3, 1)
    assert "no schema registry answers at http://127.0.0.1:1" in sent.err
    wrong = cli.run("consume", topic, "--value-format", "avro", "--schema-registry-url", "x")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "--schema-registry-url: x is not http://host:port" in wrong.err


@pytest.mark.parametrize("flags", [("-g", ""), ("-X", "group.id=")])
def test_a_group_without_a_name(kafka: Kafka, cli: ClusterCli, flags: tuple[str, str]) -> None:
    result = cli.run("consume", kafka.topic(), *flags)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert ": the name is empty" in result.err
