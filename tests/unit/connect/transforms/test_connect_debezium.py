"""Debezium's transforms on change events such as its PostgreSQL connector writes."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.connect.config.definition import ConfigType
from barnabas.connect.config.values import parse_value
from barnabas.connect.connectors.postgres.events import MESSAGE_VALUE, message_value
from barnabas.connect.plugins import load
from barnabas.connect.record import ConnectRecord, Header, SourceRecord
from barnabas.connect.transforms.debezium.envelope import DebeziumError
from barnabas.schemas.data.builder import (
    BYTES,
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    array_of,
    struct_of,
    with_default,
)
from barnabas.schemas.data.errors import ConfigError, ConnectError, DataError
from barnabas.schemas.data.schema import Schema, Struct, Type

PLACE = "io.debezium.transforms."
KEY = struct_of({"id": INT32}, name="srv.public.t.Key")
ROW = struct_of(
    {"id": INT32, "name": OPTIONAL_STRING, "kind": with_default(STRING, "plain")},
    name="srv.public.t.Value",
    optional=True,
)
SOURCE = struct_of({"lsn": OPTIONAL_INT64, "db": STRING, "ts_ms": INT64}, name="io.Source")
TRANSACTION = struct_of({"id": STRING}, name="event.block", optional=True)


def envelope_of(row: Schema, name: str = "srv.public.t.Envelope") -> Schema:
    return struct_of(
        {
            "before": row,
            "after": row,
            "source": SOURCE,
            "transaction": TRANSACTION,
            "op": STRING,
            "ts_ms": OPTIONAL_INT64,
        },
        name=name,
        version=1,
    )


def row(id_: int, name: str | None) -> Struct:
    return Struct.of(ROW, {"id": id_, "name": name, "kind": "k"})


def change(op: str, before: Struct | None, after: Struct | None, schema: Schema = ROW) -> Any:
    envelope = envelope_of(schema)
    source = Struct.of(SOURCE, {"lsn": 7, "db": "d", "ts_ms": 5})
    values = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 9}
    return SourceRecord(
        topic="srv.public.t",
        key_schema=KEY,
        key=Struct.of(KEY, {"id": 1}),
        value_schema=envelope,
        value=Struct.of(envelope, values),
        source_partition={},
        source_offset={},
    )


def tombstone() -> ConnectRecord:
    record = change("d", None, None)
    record.value_schema = record.value = None
    return record  # type: ignore[no-any-return]


def made(name: str, **settings: str) -> Any:
    transform = load(PLACE + name)()
    transform.configure({key.replace("_", "."): value for key, value in settings.items()})
    return transform


def fields_of(struct: Struct) -> dict[str, Any]:
    return {f.name: v for f, v in zip(struct.schema.fields, struct.values, strict=True)}


def test_a_change_becomes_its_row() -> None:
    unwrap = made("ExtractNewRecordState", add_fields="op,source.lsn:pos,db", add_headers="op")
    record = change("u", row(1, "old"), row(1, "new"))
    found = unwrap.apply(record)
    assert fields_of(found.value) == {
        "id": 1,
        "name": "new",
        "kind": "k",
        "__op": "u",
        "__pos": 7,
        "__db": "d",
    }
    assert found.value_schema.name == "srv.public.t.Value"
    assert found.value_schema is found.value.schema
    assert [field.schema.optional for field in found.value_schema.fields[3:]] == [True] * 3
    assert found.headers == [Header("__op", OPTIONAL_STRING, "u")]
    assert record.headers == []
    found.value.validate()


@pytest.mark.parametrize(
    ("mode", "of_delete", "of_tombstone"),
    [
        ("drop", "gone", "gone"),
        ("tombstone", None, "gone"),
        ("delete-to-tombstone", None, "gone"),
        ("rewrite", "true", "gone"),
        ("rewrite-with-tombstone", "true", None),
    ],
)
def test_deletes_become_what_the_mode_says(mode: str, of_delete: Any, of_tombstone: Any) -> None:
    settings = {"delete.tombstone.handling.mode": mode}
    unwrap = load(PLACE + "ExtractNewRecordState")()
    unwrap.configure(settings)

    def seen(record: ConnectRecord | None) -> Any:
        if record is None:
            return "gone"
        return None if record.value is None else record.value.get("__deleted")

    assert seen(unwrap.apply(change("d", row(1, "old"), None))) == of_delete
    assert seen(unwrap.apply(tombstone())) == of_tombstone
    assert unwrap.apply(change("t", None, None)) is None
    kept = unwrap.apply(change("c", None, row(1, "new")))
    assert fields_of(kept.value).get("__deleted") == ("false" if of_delete == "true" else None)


def test_other_records_pass_as_they_are() -> None:
    unwrap = made("ExtractNewRecordState")
    record = ConnectRecord(topic="t", value_schema=STRING, value="x")
    assert unwrap.apply(record) is record


def test_rows_are_routed_and_fields_left_out() -> None:
    unwrap = made("ExtractNewRecordState", route_by_field="name", drop_fields_header_name="h")
    record = change("c", None, row(1, "topic-of-row"))
    record.headers.append(Header("h", array_of(STRING), ["name", "id"]))
    found = unwrap.apply(record)
    assert found.topic == "topic-of-row"
    assert fields_of(found.value) == {"id": 1, "kind": "k"}  # only what is optional goes


OUTBOX = struct_of(
    {
        "id": STRING,
        "aggregatetype": STRING,
        "aggregateid": STRING,
        "type": STRING,
        "payload": OPTIONAL_STRING,
        "at": Schema(Type.INT64, name="io.debezium.time.MicroTimestamp", optional=True),
        "shard": INT32,
    },
    name="srv.public.outbox.Value",
    optional=True,
)


def event(op: str = "c", payload: str | None = '{"a":1}') -> Any:
    values = {
        "id": "e1",
        "aggregatetype": "order",
        "aggregateid": "o7",
        "type": "Created",
        "payload": payload,
        "at": 5_000_123,
        "shard": 2,
    }
    return change(op, None, Struct.of(OUTBOX, values), OUTBOX)


def test_a_row_of_an_outbox_becomes_its_event() -> None:
    found = made("outbox.EventRouter").apply(event())
    assert (found.topic, found.key, found.value) == ("outbox.event.order", "o7", '{"a":1}')
    assert (found.timestamp_ms, found.partition) == (9, None)
    assert found.headers == [Header("id", STRING, "e1")]


def test_columns_go_where_they_are_placed() -> None:
    router = made(
        "outbox.EventRouter",
        table_fields_additional_placement="type:header:kind,type:envelope,shard:partition",
        table_field_event_timestamp="at",
        route_topic_replacement="events.${routedByValue}",
    )
    found = router.apply(event())
    assert found.topic == "events.order"
    assert fields_of(found.value) == {"payload": '{"a":1}', "type": "Created"}
    assert found.value_schema.name == "srv.public.outbox.order.Value"
    assert found.headers[1:] == [Header("kind", STRING, "Created")]
    assert (found.partition, found.timestamp_ms) == (2, 5000)


def test_json_of_an_event_becomes_a_struct() -> None:
    router = made("outbox.EventRouter", table_expand_json_payload="true")
    payload = '{"a":1,"b":{"c":[{"d":1.5},{"e":null,"f":"x"}]},"n":null,"l":5000000000}'
    found = router.apply(event(payload=payload))
    assert fields_of(found.value)["a"] == 1
    inner = fields_of(found.value)["b"]
    assert inner.schema.name == "payload.b"
    assert [fields_of(item) for item in inner.get("c")] == [
        {"d": 1.5, "f": None},
        {"d": None, "f": "x"},
    ]
    found.value.validate()
    for text in ("no json", "{", "[1]"):
        assert router.apply(event(payload=text)).value == text


def test_only_new_rows_of_an_outbox_are_events() -> None:
    router = made("outbox.EventRouter")
    assert router.apply(event("d")) is None
    assert router.apply(event("u")) is None
    assert router.apply(tombstone()) is None
    strict = made("outbox.EventRouter", table_op_invalid_behavior="fatal")
    with pytest.raises(ConnectError, match=r"^Unexpected update message received Struct\{id=1\}"):
        strict.apply(event("u"))
    empty = made("outbox.EventRouter", route_tombstone_on_empty_payload="true").apply(
        event(payload=" ")
    )
    assert (empty.value_schema, empty.value, empty.key) == (None, None, "o7")
    with pytest.raises(ConnectError, match=r"^Unable to find payload field none in event$"):
        made("outbox.EventRouter", table_field_event_payload="none").apply(event())
    with pytest.raises(ConfigError, match=r"valid String pairs"):
        made("outbox.EventRouter", table_fields_additional_placement="a")


def test_tables_share_a_topic_with_keys_apart() -> None:
    router = made(
        "ByLogicalTableRouter",
        topic_regex="(.*)\\.t(.*)",
        topic_replacement="$1.all",
        key_field_regex=".*\\.(t.*)",
        key_field_replacement="table-$1",
        key_field_name="origin",
    )
    found = router.apply(change("u", row(1, "old"), row(1, "new")))
    assert found.topic == "srv.public.all"
    assert fields_of(found.key) == {"id": 1, "origin": "table-t"}
    assert found.key_schema.name == "srv.public.all.Key"
    assert found.value_schema.name == "srv.public.all.Envelope"
    assert found.value.get("after").schema.name == "srv.public.all.Value"
    found.value.validate()
    gone = router.apply(tombstone())
    assert gone.value is None
    assert fields_of(gone.key) == {"id": 1, "origin": "table-t"}
    other = ConnectRecord(topic="other")
    assert router.apply(other) is other
    with pytest.raises(ConfigError, match=r"must be non-empty if key\.field\.regex is set\.$"):
        made("ByLogicalTableRouter", topic_regex="a", topic_replacement="b", key_field_regex="c")


MOMENTS = struct_of(
    {
        "at": Schema(Type.STRING, name="io.debezium.time.ZonedTimestamp"),
        "local": Schema(Type.INT64, name="io.debezium.time.MicroTimestamp", optional=True),
        "time": Schema(Type.STRING, name="io.debezium.time.ZonedTime", optional=True),
    },
    name="srv.public.t.Value",
    optional=True,
)


def moments(at: str, local: int | None = None, time: str | None = None) -> Any:
    return change("u", None, Struct(MOMENTS, [at, local, time]), MOMENTS)


def test_moments_are_shown_in_the_zone_and_local_times_become_its_own() -> None:
    zone = made("TimezoneConverter", converted_timezone="Europe/Paris")
    record = moments("2024-07-01T10:00:00.5Z", 1_719_828_000_000_000)
    found = zone.apply(record).value.get("after").values
    assert found[:2] == ["2024-07-01T12:00:00.5+02:00", 1_719_820_800_000_000]
    assert record == moments("2024-07-01T10:00:00.5Z", 1_719_828_000_000_000)
    shown = zone.apply(moments("2024-07-01T10:00:00Z", time="10:00:00Z")).value.get("after")
    assert shown.get("time") in ("11:00:00+01:00", "12:00:00+02:00")  # as it is today


@pytest.mark.parametrize(
    "text", ["", "2024-07-01", "2024-02-30T10:00:00Z", "2024-07-01T24:00:00Z", "9999-12-31T23:30Z"]
)
def test_texts_that_are_no_moments_are_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"of the years 1 to 9999$"):
        made("TimezoneConverter", converted_timezone="+01:00").apply(moments(text))


def test_headers_that_come_and_go_become_fields() -> None:
    move = made("HeaderToValue", headers="a,b", fields="from_a,after.b", operation="move")
    record = change("c", None, row(1, "new"))
    record.headers = [Header("a", STRING, "x"), Header("c", STRING, "stays")]
    first = move.apply(record)
    assert first.value.get("from_a") == "x"
    assert [header.key for header in first.headers] == ["c"]
    assert len(record.headers) == 2
    record.headers = [Header("b", INT32, 7)]
    second = move.apply(record)
    assert second.value.schema.field("from_a") is None
    assert fields_of(second.value.get("after")) == {"id": 1, "name": "new", "kind": "k", "b": 7}
    assert second.value_schema is second.value.schema
    record.headers = [Header("a", STRING, None)]
    with pytest.raises(DataError, match=r"null used for required field: \"from_a\""):
        move.apply(record)


def test_transforms_that_run_scripts_are_refused_in_words() -> None:
    with pytest.raises(ConfigError, match=r"runs scripts in a Java VM, and none is here"):
        load(PLACE + "Filter")
    with pytest.raises(ConfigError, match=r"for configuration type: Class .* runs scripts"):
        parse_value("type", PLACE + "ContentBasedRouter", ConfigType.CLASS)


@pytest.mark.parametrize(
    ("class_name", "why"),
    [
        ("openlineage.OpenLineage", "OpenLineage server"),
        ("tracing.ActivateTracingSpan", "OpenTelemetry's agent"),
    ],
)
def test_transforms_that_need_other_systems_are_refused_in_words(class_name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load(PLACE + class_name)


def test_kinds_of_schema_changes_that_do_not_exist_are_refused() -> None:
    transform = load(PLACE + "SchemaChangeEventFilter")()
    with pytest.raises(ConfigError, match="Values must be among CREATE, ALTER"):
        transform.configure({"schema.change.event.exclude.list": "CREATE,RENAME"})


@pytest.mark.parametrize(("function", "partition"), [("java", 32613), ("murmur", 455857)])
def test_bytes_choose_partitions_as_java_s_byte_buffers(function: str, partition: int) -> None:
    envelope = struct_of({"data": BYTES, "op": STRING}, name="t.Envelope")
    transform = load(PLACE + "partitions.PartitionRouting")()
    transform.configure(
        {
            "partition.payload.fields": "data",
            "partition.topic.num": "1000003",
            "partition.hash.function": function,
        }
    )
    value = Struct(envelope, [b"\x01\xfe\x03", "c"])
    record = SourceRecord(
        topic="t", value_schema=envelope, value=value, source_partition={}, source_offset={}
    )
    assert transform.apply(record).partition == partition
    assert record.partition is None


def test_a_message_of_broken_json_is_refused_without_its_text() -> None:
    name = "io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent"
    transform = load(name)()
    transform.configure({})
    source = Struct.of(MESSAGE_VALUE.field("source").schema)
    value = message_value(5, source, None, "outbox", b'{"card": 4711')
    record = SourceRecord(
        topic="t",
        value_schema=MESSAGE_VALUE,
        value=value,
        source_partition={},
        source_offset={},
    )
    with pytest.raises(DebeziumError, match="Unable to parse") as refused:
        transform.apply(record)
    assert "4711" not in str(refused.value)
