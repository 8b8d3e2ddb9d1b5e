"""Schema checks of produced batches, by the topic's settings."""

from __future__ import annotations

import pytest

from barnabas.node.broker.schemas.checks import check_batch
from barnabas.node.broker.schemas.registry import (
    RECORD_NAME_STRATEGY,
    TOPIC_RECORD_NAME_STRATEGY,
    Claim,
)
from barnabas.node.broker.schemas.wire_format import VALUE_HEADER
from barnabas.node.log.config import TOPIC_NAME_STRATEGY, LogConfig, SchemaValidation
from barnabas.node.log.validator import RECORD_ERRORS_MAX, Rejection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record, encode_batch
from support.schema_world import SchemaWorld, id_of

KEYS = SchemaValidation(TOPIC_NAME_STRATEGY, None)
VALUES = SchemaValidation(None, TOPIC_NAME_STRATEGY)
BOTH = SchemaValidation(TOPIC_NAME_STRATEGY, TOPIC_NAME_STRATEGY)
BY_RECORD = SchemaValidation(None, RECORD_NAME_STRATEGY)
BY_BOTH = SchemaValidation(None, TOPIC_RECORD_NAME_STRATEGY)
KEY, VALUE, RECORD, TOPIC_RECORD, OTHER = map(id_of, (1, 2, 3, 4, 9))
GUID = b"\x01" + bytes(range(16))
NAMELESS = "does not begin with a magic byte"

CASES: list[tuple[str, SchemaValidation, list[Record], list[int]]] = [
    ("a registered value", VALUES, [Record(value=VALUE + b"v")], []),
    ("a value that ends with its id", VALUES, [Record(value=VALUE)], []),
    ("keys are not asked for", VALUES, [Record(key=b"k", value=VALUE)], []),
    ("values are not asked for", KEYS, [Record(key=KEY, value=b"v")], []),
    ("a tombstone", BOTH, [Record(key=KEY, value=None)], []),
    ("a null key", BOTH, [Record(key=None, value=VALUE)], []),
    ("both null", BOTH, [Record()], []),
    ("an empty value is not null", VALUES, [Record(value=b"")], [0]),
    ("an empty key is not null", KEYS, [Record(key=b"")], [0]),
    ("text", VALUES, [Record(value=b"some text")], [0]),
    ("an id cut short", VALUES, [Record(value=VALUE[:4])], [0]),
    ("another magic byte", VALUES, [Record(value=b"\2" + VALUE[1:])], [0]),
    ("an id that nobody has", VALUES, [Record(value=OTHER)], [0]),
    ("the id 0", VALUES, [Record(value=bytes(5))], [0]),
    ("an id below 0", VALUES, [Record(value=b"\0\xff\xff\xff\xff")], [0]),
    ("a value's id in a key", KEYS, [Record(key=VALUE)], [0]),
    ("a key's id in a value", VALUES, [Record(value=KEY)], [0]),
    ("both, of which one is wrong", BOTH, [Record(key=KEY, value=KEY)], [0]),
    ("one of many", VALUES, [Record(value=VALUE), Record(value=b"v"), Record(value=VALUE)], [1]),
    ("some of many", VALUES, [Record(value=OTHER), Record(), Record(value=OTHER)], [0, 2]),
    ("a GUID", VALUES, [Record(value=GUID + b"v")], []),
    ("a GUID that nobody has", VALUES, [Record(value=GUID[:-1] + b"x")], [0]),
    ("a GUID cut short", VALUES, [Record(value=GUID[:-1])], [0]),
    ("a GUID in a header", VALUES, [Record(value=b"v", headers=[(VALUE_HEADER, GUID)])], []),
    ("an id in a header", VALUES, [Record(value=b"v", headers=[(VALUE_HEADER, VALUE)])], []),
    ("a bad header", VALUES, [Record(value=VALUE, headers=[(VALUE_HEADER, b"?")])], [0]),
    ("another's header", VALUES, [Record(value=VALUE, headers=[("trace", b"?")])], []),
    ("a record's name", BY_RECORD, [Record(value=RECORD)], []),
    ("not a record's name", BY_RECORD, [Record(value=VALUE)], [0]),
    ("topic and record", BY_BOTH, [Record(value=TOPIC_RECORD)], []),
    ("topic without record", BY_BOTH, [Record(value=RECORD)], [0]),
]


def world() -> SchemaWorld:
    made = SchemaWorld()
    made.register(1, "t-key")
    made.register(2, "t-value")
    made.register(3, "Order")
    made.register(4, "t-Order")
    made.registered.add((GUID, "t-value"))
    return made


async def check(
    made: SchemaWorld, validation: SchemaValidation, batch: bytearray
) -> Rejection | None:
    """The verdict once everything is known."""
    while True:
        result = check_batch(made.known, "t", validation, memoryview(batch))
        if not isinstance(result, list):
            return result
        await made.known.learn(result, made.clock.time_ms + 1000)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    ("validation", "records", "refused"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
async def test_records_and_settings(
    validation: SchemaValidation, records: list[Record], refused: list[int], codec: Codec
) -> None:
    rejection = await check(world(), validation, encode_batch(records, codec=codec))
    if not refused:
        assert rejection is None
        return
    assert rejection is not None
    assert rejection.error is ErrorCode.INVALID_RECORD
    assert [index for index, _ in rejection.record_errors] == refused
    assert all(text for _, text in rejection.record_errors)


async def test_messages_name_part_schema_and_subject() -> None:
    made = world()
    assert await check(made, BOTH, encode_batch([Record(value=OTHER)])) is not None
    records = [Record(key=b"k", value=VALUE), Record(key=KEY, value=OTHER)]
    rejection = await check(made, BOTH, encode_batch(records))
    assert rejection is not None
    texts = [text for _, text in rejection.record_errors]
    assert texts == [
        "the key names no schema: it does not begin with a magic byte and a schema id",
        "the value names schema 9, which is not registered under t-value",
    ]


async def test_a_million_bad_records_are_not_all_named() -> None:
    rejection = await check(world(), VALUES, encode_batch([Record(value=b"v")] * 1000))
    assert rejection is not None
    assert len(rejection.record_errors) == RECORD_ERRORS_MAX


async def test_a_batch_of_nonsense_asks_little() -> None:
    made = world()
    records = [Record(value=id_of(number)) for number in range(1000, 2000)]
    assert await check(made, VALUES, encode_batch(records)) is not None
    assert len(made.asked) <= 64


async def test_what_needs_no_question_is_refused_at_once() -> None:
    made = world()
    batch = encode_batch([Record(value=OTHER), Record(value=b"v")])
    rejection = check_batch(made.known, "t", VALUES, memoryview(batch))
    assert isinstance(rejection, Rejection)
    assert [index for index, _ in rejection.record_errors] == [1]
    assert made.asked == []


@pytest.mark.parametrize("strategy", [RECORD_NAME_STRATEGY, TOPIC_RECORD_NAME_STRATEGY])
async def test_key_and_value_of_one_record_name_are_one_question(strategy: str) -> None:
    made = world()
    records = [Record(key=TOPIC_RECORD, value=TOPIC_RECORD)]
    await check(made, SchemaValidation(strategy, strategy), encode_batch(records))
    assert len(set(made.asked)) == 1


async def test_damage_is_left_to_the_log() -> None:
    made = world()
    batch = encode_batch([Record(value=b"no schema")])
    batch[-3] ^= 1
    assert check_batch(made.known, "t", VALUES, memoryview(batch)) is None
    for size in range(len(batch)):
        assert check_batch(made.known, "t", VALUES, memoryview(batch)[:size]) is None
    control = encode_batch([Record(value=b"no schema")], is_control=True)
    assert check_batch(made.known, "t", VALUES, memoryview(control)) is None


def test_settings_of_a_topic() -> None:
    assert LogConfig().schema_validation is None
    values = {
        "confluent.value.schema.validation": True,
        "confluent.value.subject.name.strategy": RECORD_NAME_STRATEGY,
    }
    assert LogConfig.from_topic_values(values).schema_validation == BY_RECORD
    config = LogConfig(confluent_key_schema_validation=True)
    assert config.schema_validation == KEYS


def test_subjects() -> None:
    def subject(strategy: str, name: str | None, *, is_key: bool = False) -> str | None:
        return Claim(VALUE, strategy, "t", is_key).subject(name)

    assert subject(TOPIC_NAME_STRATEGY, None) == "t-value"
    assert subject(TOPIC_NAME_STRATEGY, None, is_key=True) == "t-key"
    assert subject(RECORD_NAME_STRATEGY, "a.B") == "a.B"
    assert subject(TOPIC_RECORD_NAME_STRATEGY, "a.B") == "t-a.B"
    assert subject(RECORD_NAME_STRATEGY, None) is None
    assert subject(TOPIC_RECORD_NAME_STRATEGY, None) is None
