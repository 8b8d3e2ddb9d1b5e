"""Produce (key 0), versions 3-13: KIP-98, 226, 360, 467, 516, 890, 951.

Each batch is validated, gets its offsets in place and goes to the log as the slice of the frame
that it is. `acks=0` is never answered (a failure closes the connection, as in Kafka), `acks=1`
when this replica has stored the records (Kafka's leader waits for an fsync too where
`flush.messages` asks for it), `acks=all` when the high watermark has passed them.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct

from barnabas.base.network import Part
from barnabas.broker.client_state import client_state
from barnabas.broker.context import RequestContext
from barnabas.broker.produce.codec import TOPIC_ID_FROM, parse_produce
from barnabas.broker.produce.fast_path import ProduceShapes, Shape
from barnabas.broker.produce.outcome import (
    ATTRIBUTES_AT,
    Outcome,
    find_partition,
    is_transactional,
)
from barnabas.broker.produce.transactional import UNDER_WAY, TransactionalProduce
from barnabas.broker.produce.waits import ACKS_ALL, VERSION_AND_CORRELATION, RepeatedWait
from barnabas.broker.services import BrokerServices
from barnabas.log.errors import LogDirFailure
from barnabas.log.partition_log import PartitionLog
from barnabas.net.connection import Connection, Reply
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, TRANSACTIONAL_MASK
from barnabas.replication.partition import Partition

RUN_MAX = 256
"""Requests whose records are written together; as many buffers as one gathering write takes."""

PRODUCER_POSITION = 43
"""Where a batch has its producer's id and epoch."""
_PRODUCER = Struct(">qh")


def handle_produce(
    services: BrokerServices, context: RequestContext, frame: bytearray, position: int
) -> Sequence[Part] | Reply:
    """Append what the request holds; raises DecodeError for a malformed one."""
    version = context.api_version
    request = parse_produce(frame, position, version)
    view = memoryview(frame)
    by_id = version >= TOPIC_ID_FROM
    now_ms = services.clock.now_ms()
    if request.transactional_id is not None:
        return TransactionalProduce(services, context, request, view).start()
    outcome = Outcome(services, context, request.acks)
    found: Partition | ErrorCode = ErrorCode.NONE
    for topic, partitions in request.topics:
        outcome.begin(topic)
        for entry in partitions:
            found = find_partition(services, context, request, topic, entry, by_id)
            if isinstance(found, Partition):
                outcome.append(found, entry.partition, view[entry.start : entry.end], now_ms)
            else:
                outcome.refuse(entry.partition, found)
    if isinstance(found, Partition) and not outcome.has_errors:
        client_state(context.connection).shapes.learn(frame, version, request, found)
    return outcome.finish(request.timeout_ms)


def handle_again(
    services: BrokerServices, connection: Connection, shapes: ProduceShapes, frame: bytearray
) -> Sequence[Part] | Reply | None:
    """As `handle` for a whole frame that repeats an earlier one; None: it does not.

    The requests behind it that have arrived already, and repeat it too, are answered with it.
    """
    repeated = shapes.find(frame)
    if repeated is None:
        return None
    shape, start, end = repeated
    partition = shape.partition
    log = partition.log
    if (
        partition.leader_id != partition.node_id
        or log.is_closed
        or log.log_directory.is_offline
        or (
            shape.acks == ACKS_ALL
            and partition.isr_size < log.config.min_insync_replicas
            and partition.is_under_min_isr
        )
    ):
        return None
    terms = None
    if shape.is_transactional:
        if not _is_under_way(connection, log, frame, start, end):
            return None
        terms = UNDER_WAY
    elif end - start > ATTRIBUTES_AT and frame[start + ATTRIBUTES_AT] & TRANSACTIONAL_MASK:
        return None
    records = memoryview(frame)[start:end]
    now_ms = services.clock.now_ms()
    try:
        if connection.frames:
            frames = [frame]
            first_offsets = partition.append_alone(
                _with_next(connection, shapes, shape, frames, records), now_ms
            )
            if first_offsets:
                if not connection.is_closed:
                    for _ in range(len(first_offsets) - 1):
                        connection.frames.popleft()
                return list(map(shape.respond, frames, first_offsets))
        else:
            first_offsets = partition.append_alone((records,), now_ms)
            if first_offsets:
                return (shape.respond(frame, first_offsets[0]),)
        result = partition.append(records, now_ms, terms=terms)
    except LogDirFailure:
        return None  # the general way finds the directory offline, and says so
    if not result.error and (
        partition.high_watermark > result.last_offset
        or (shape.acks != ACKS_ALL and partition.stored_offset > result.last_offset)
    ):
        return (shape.respond(frame, result.first_offset, result.log_append_time_ms),)
    if not result.error:
        waiting = RepeatedWait(services, connection, shape, frame, result)
        return waiting.start(result.last_offset + 1)
    version, correlation_id = VERSION_AND_CORRELATION.unpack_from(frame, 2)
    context = RequestContext(ApiKey.PRODUCE, version, correlation_id, None, connection)
    outcome = Outcome(services, context, shape.acks)
    outcome.begin(shape.topic)
    outcome.take(partition, shape.index, result)
    return outcome.finish(shape.timeout_ms)


def _is_under_way(
    connection: Connection, log: PartitionLog, frame: bytearray, start: int, end: int
) -> bool:
    """Whether the batch from `start` to `end` is part of a transaction that has begun here.

    Then nobody need be asked, unless a request before it still waits for an answer.
    """
    before = client_state(connection).transactional_produce
    if (
        end - start < HEADER_SIZE_BYTES
        or not frame[start + ATTRIBUTES_AT] & TRANSACTIONAL_MASK
        or not (before is None or before.done())
    ):
        return False
    producer_id, producer_epoch = _PRODUCER.unpack_from(frame, start + PRODUCER_POSITION)
    return log.producers.is_open_in(producer_id, producer_epoch)


def _with_next(
    connection: Connection,
    shapes: ProduceShapes,
    shape: Shape,
    frames: list[bytearray],
    records: memoryview,
) -> Iterator[memoryview]:
    """`records`, then those of the next frames as long as they repeat `shape`; adds to `frames`."""
    yield records
    for frame in islice(connection.frames, RUN_MAX):
        try:
            found = shapes.find(frame)
        except DecodeError:
            return  # it will be found again when its turn comes
        if found is None or found[0] is not shape:
            return
        records = memoryview(frame)[found[1] : found[2]]
        if is_transactional(records) is not shape.is_transactional:
            return
        frames.append(frame)
        yield records
