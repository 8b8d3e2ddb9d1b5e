"""Schemas named in a batch: a check in steps gives the same verdict as one of the whole batch."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.node.broker.schemas.checks import check_batch, judge_named
from barnabas.node.broker.schemas.named_schemas import IDENTITIES_MAX, NamedSchemas
from barnabas.node.broker.schemas.wire_format import KEY_HEADER, VALUE_HEADER
from barnabas.node.log.config import LogConfig, SchemaValidation
from barnabas.node.log.stepped_check import CheckedBatch, check_in_steps
from barnabas.node.log.turns import run_at_once
from barnabas.node.log.validator import Rejection
from barnabas.protocol.records.batch import Codec, read_header
from barnabas.protocol.records.decompressing import Budget
from barnabas.protocol.records.records import Record, encode_batch
from support.effort import examples
from support.schema_world import SchemaWorld, id_of

MEBIBYTE = 2**20
GUID = b"\1" + bytes(15) + b"\7"
named = st.sampled_from([id_of(1), id_of(2), id_of(3), GUID, b"", b"\0\0", b"{}", b"\1\1"])
payloads = st.none() | st.tuples(named, st.sampled_from([0, 1, 100, 20_000])).map(
    lambda found: found[0] + bytes(found[1])
)
headers = st.lists(
    st.tuples(
        st.sampled_from([KEY_HEADER, VALUE_HEADER, "other", KEY_HEADER + "s" * 40]),
        st.none() | named | named.map(lambda found: found + bytes(18_000)),
    ),
    max_size=3,
)
records = st.lists(st.builds(Record, key=payloads, value=payloads, headers=headers), min_size=1)
validations = st.sampled_from(
    [
        LogConfig(confluent_key_schema_validation=key, confluent_value_schema_validation=value)
        for key, value in ((True, False), (False, True), (True, True))
    ]
)


def validation_of(config: LogConfig) -> SchemaValidation:
    assert config.schema_validation is not None
    return config.schema_validation


def noted(batch: bytearray, config: LogConfig) -> NamedSchemas:
    watch = NamedSchemas(validation_of(config))
    header = read_header(batch)
    steps = check_in_steps(memoryview(batch), header, config, 0, Budget(64 * MEBIBYTE), watch)
    assert isinstance(run_at_once(steps), CheckedBatch)
    return watch


@settings(max_examples=examples(18))
@given(records, st.sampled_from(list(Codec)), validations)
def test_any_batch(found: list[Record], codec: Codec, config: LogConfig) -> None:
    world = SchemaWorld()
    world.register(1, "orders-value")
    world.register(2, "orders-key")
    world.registered.add((GUID, "orders-value"))
    batch = encode_batch(found, codec=codec)
    validation = validation_of(config)
    watch = noted(batch, config)
    while True:
        expected = check_batch(world.known, "orders", validation, memoryview(batch))
        got = judge_named(world.known, "orders", validation, watch)
        if not isinstance(expected, list):
            assert got == expected
            return
        assert isinstance(got, list)
        assert set(got) == set(expected)
        asyncio.run(world.known.learn(expected, 1000))


def test_a_batch_that_names_very_many_schemas_is_refused() -> None:
    config = LogConfig(confluent_value_schema_validation=True)
    batch = encode_batch([Record(value=id_of(at + 1)) for at in range(IDENTITIES_MAX + 1)])
    watch = noted(batch, config)
    assert len(watch.places) == IDENTITIES_MAX
    world = SchemaWorld()
    refused = judge_named(world.known, "orders", validation_of(config), watch)
    assert isinstance(refused, Rejection)
