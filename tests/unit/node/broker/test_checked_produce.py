"""Produce requests to topics that validate schemas, over a connection."""

from __future__ import annotations

import pytest

from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.produce.checked import WAIT_SHARE
from barnabas.node.broker.schemas.known_schemas import PAUSE_MAX_MS
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import Codec
from barnabas.protocol.records.records import Record, encode_batch
from support.logs import NOW_MS
from support.produce_world import CHECKED, PLAIN, TIMEOUT_MS, VALIDATES, ProduceWorld
from support.schema_world import id_of, settle

GOOD, BAD = id_of(1), id_of(9)
NONE = ErrorCode.NONE
REFUSED = ErrorCode.INVALID_RECORD
TRY_AGAIN = ErrorCode.NOT_LEADER_OR_FOLLOWER
WAIT_MS = int(TIMEOUT_MS * WAIT_SHARE)


def batch(
    *values: bytes,
    producer: tuple[int, int, int] = (-1, -1, -1),
    transactional: bool = False,
    codec: Codec = Codec.NONE,
) -> bytearray:
    return encode_batch(
        [Record(timestamp=NOW_MS, value=value) for value in values],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        is_transactional=transactional,
        codec=codec,
    )


async def world_that_knows() -> ProduceWorld:
    """GOOD and BAD have been asked for."""
    world = ProduceWorld()
    world.schemas.register(1, "checked-value")
    world.send((CHECKED, batch(GOOD + b"first")))
    world.send((CHECKED, batch(BAD)))
    await settle()
    assert world.errors() == [(0, [NONE]), (1, [REFUSED])]
    world.sent.clear()
    return world


@pytest.mark.parametrize("codec", list(Codec))
async def test_what_is_known_is_answered_at_once(codec: Codec) -> None:
    world = await world_that_knows()
    number = world.send((CHECKED, batch(GOOD + b"a", GOOD + b"b", codec=codec)))
    assert world.errors() == [(number, [NONE])]
    assert world.values(CHECKED) == [GOOD + b"first", GOOD + b"a", GOOD + b"b"]
    assert len(world.schemas.asked) == 2


async def test_one_bad_record_refuses_its_batch_and_is_named() -> None:
    world = await world_that_knows()
    world.send((CHECKED, batch(GOOD, BAD, b"text")))
    ((_, [answer]),) = world.answers()
    assert answer.error_code == REFUSED
    assert answer.base_offset == -1
    assert [error.batch_index for error in answer.record_errors] == [1, 2]
    assert answer.error_message
    assert world.values(CHECKED) == [GOOD + b"first"]


@pytest.mark.parametrize("version", range(3, 13))
async def test_every_version_is_answered(version: int) -> None:
    world = await world_that_knows()
    world.send((CHECKED, batch(b"text")), version=version)
    ((_, [answer]),) = world.answers()
    assert answer.error_code == REFUSED
    assert bool(answer.record_errors) is (version >= 8)


async def test_partitions_are_judged_apart() -> None:
    world = await world_that_knows()
    number = world.send((CHECKED, batch(BAD)), (PLAIN, batch(b"text")))
    assert world.errors() == [(number, [REFUSED, NONE])]
    assert world.values(PLAIN) == [b"text"]


async def test_an_unknown_schema_is_asked_and_what_comes_behind_waits() -> None:
    world = ProduceWorld()
    world.schemas.register(1, "checked-value")
    world.send((PLAIN, batch(b"0")))
    assert client_state(world.connection).repeated is not None
    world.sent.clear()
    world.schemas.is_slow = True
    world.send((CHECKED, batch(GOOD)))
    world.send((PLAIN, batch(b"1")))
    world.send((CHECKED, batch(b"text")))
    world.send((PLAIN, batch(b"2")))
    await settle()
    assert world.errors() == []
    assert world.values(PLAIN) == [b"0"]
    world.schemas.answer_now()
    await settle()
    assert world.errors() == [(1, [NONE]), (2, [NONE]), (3, [REFUSED]), (4, [NONE])]
    assert world.values(PLAIN) == [b"0", b"1", b"2"]


async def test_what_repeats_a_request_does_not_overtake_those_that_wait() -> None:
    """The second request is answered while the third waits; the fourth is like the second."""
    world = ProduceWorld()
    world.schemas.register(1, "checked-value")
    world.schemas.is_slow = True
    world.send((CHECKED, batch(GOOD)))
    world.send((PLAIN, batch(b"1")))
    world.send((CHECKED, batch(id_of(2))), (PLAIN, batch(b"2")))
    await settle()
    world.schemas.answer_now()
    world.schemas.is_slow = True
    await settle()
    world.send((PLAIN, batch(b"3")))
    await settle()
    assert world.values(PLAIN) == [b"1"]
    world.schemas.answer_now()
    await settle()
    assert world.values(PLAIN) == [b"1", b"2", b"3"]


async def test_a_registry_that_is_down_is_waited_for_and_then_the_client_tries_again() -> None:
    world = ProduceWorld()
    world.schemas.register(1, "checked-value")
    world.schemas.failure = "down"
    world.send((CHECKED, batch(GOOD, producer=(7, 0, 0))), (PLAIN, batch(b"text")))
    await world.schemas.pass_time(WAIT_MS - 100)
    assert world.errors() == []
    await world.schemas.pass_time(200)
    assert world.errors() == [(0, [TRY_AGAIN, NONE])]
    assert world.values(CHECKED) == []
    world.schemas.failure = None
    await world.schemas.pass_time(PAUSE_MAX_MS)
    world.send((CHECKED, batch(GOOD, producer=(7, 0, 0))))
    await settle()
    assert world.errors()[1:] == [(1, [NONE])]


async def test_a_registry_that_comes_back_in_time_is_no_failure() -> None:
    world = ProduceWorld()
    world.schemas.register(1, "checked-value")
    world.schemas.failure = "down"
    world.send((CHECKED, batch(GOOD)))
    await world.schemas.pass_time(WAIT_MS // 3)
    world.schemas.failure = None
    await world.schemas.pass_time(WAIT_MS // 2)
    assert world.errors() == [(0, [NONE])]


async def test_what_waits_for_a_client_that_has_gone_is_not_appended() -> None:
    world = ProduceWorld()
    world.schemas.register(1, "checked-value")
    world.schemas.is_slow = True
    world.send((CHECKED, batch(GOOD)))
    world.send((PLAIN, batch(b"text")))
    await settle()
    world.connection.closed(None)
    world.schemas.answer_now()
    await settle()
    assert world.values(CHECKED) == world.values(PLAIN) == []


async def test_the_end_of_the_node_refuses_what_waits() -> None:
    world = ProduceWorld()
    world.schemas.is_slow = True
    world.send((CHECKED, batch(GOOD)))
    await settle()
    world.schemas.known.close()
    await settle()
    assert world.errors() == [(0, [TRY_AGAIN])]
    world.schemas.answer_now()
    await settle()


async def test_a_refused_batch_uses_up_no_sequence_number() -> None:
    world = await world_that_knows()
    world.send((CHECKED, batch(GOOD, producer=(7, 0, 0))))
    world.send((CHECKED, batch(BAD, producer=(7, 0, 1))))
    world.send((CHECKED, batch(GOOD, producer=(7, 0, 1))))
    assert [errors for _, errors in world.errors()] == [[NONE], [REFUSED], [NONE]]


async def test_a_refused_transactional_batch_begins_nothing() -> None:
    world = await world_that_knows()
    world.send((CHECKED, batch(BAD, producer=(7, 0, 0), transactional=True)), transactional_id="t")
    await settle()
    assert [errors for _, errors in world.errors()] == [[REFUSED]]
    assert world.coordinator_asked == 0
    assert 7 not in world.logs[CHECKED].log.producers.producers


async def test_transactional_batches_wait_for_registry_and_coordinator_in_their_order() -> None:
    world = ProduceWorld()
    world.schemas.register(1, "checked-value")
    world.schemas.is_slow = True
    for sequence in range(3):
        value = GOOD + bytes([sequence])
        one = batch(value, producer=(7, 0, sequence), transactional=True)
        world.send((CHECKED, one), transactional_id="t")
    await settle()
    world.schemas.answer_now()
    await settle()
    assert world.errors() == [(0, [NONE]), (1, [NONE]), (2, [NONE])]
    assert world.coordinator_asked == 1
    assert world.values(CHECKED) == [GOOD + b"\0", GOOD + b"\1", GOOD + b"\2"]


async def test_without_acks_a_refusal_closes_the_connection() -> None:
    world = await world_that_knows()
    world.send((CHECKED, batch(GOOD + b"second")), acks=0)
    world.send((CHECKED, batch(id_of(2))), acks=0)
    await settle()
    assert world.is_closed
    assert world.sent == b""
    assert world.values(CHECKED) == [GOOD + b"first", GOOD + b"second"]


async def test_validation_that_is_turned_on_binds_requests_that_repeat_earlier_ones() -> None:
    world = ProduceWorld()
    world.send((PLAIN, batch(b"text")))
    world.send((PLAIN, batch(b"text")))
    world.logs[PLAIN].log.config = VALIDATES
    world.send((PLAIN, batch(b"text")))
    world.logs[PLAIN].log.config = world.logs[PLAIN].config
    world.send((PLAIN, batch(b"text")))
    await settle()
    assert [errors for _, errors in world.errors()] == [[NONE], [NONE], [REFUSED], [NONE]]


async def test_nothing_is_let_through_unchecked() -> None:
    """A partition whose turn to validate comes after the check, as by a change of leader."""
    world = ProduceWorld()
    world.schemas.known.is_needed = False
    world.send((CHECKED, batch(GOOD)))
    assert world.errors() == [(0, [TRY_AGAIN])]


async def test_damage_is_called_damage() -> None:
    world = await world_that_knows()
    damaged = batch(b"text")
    damaged[-2] ^= 1
    number = world.send((CHECKED, damaged))
    assert world.errors() == [(number, [ErrorCode.CORRUPT_MESSAGE])]
