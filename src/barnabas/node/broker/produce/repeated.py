"""Produce requests that repeat themselves are answered before their header is read.

`fast_path.py` tells which do; here their records are appended, and those of the requests behind
them that have arrived already and repeat them too.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from struct import Struct

from barnabas.base.network import Part
from barnabas.node.broker.client_state import client_state
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.authorized import may_write
from barnabas.node.broker.produce.codec import ACKS_ALL, ParsedProduce
from barnabas.node.broker.produce.fast_path import ProduceShapes, Shape, may_be_repeated
from barnabas.node.broker.produce.outcome import (
    ATTRIBUTES_AT,
    UNDER_WAY,
    Outcome,
    is_compressed,
    is_transactional,
)
from barnabas.node.broker.produce.waits import RepeatedWait, repeated_context
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.errors import LogDirFailure
from barnabas.node.log.partition_log import PartitionLog
from barnabas.node.log.stepped_check import CheckedBatch, is_long
from barnabas.node.net.connection import Connection, Reply
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.batch import HEADER_SIZE_BYTES, TRANSACTIONAL_MASK

RUN_MAX = 256
"""Requests whose records are written together; as many buffers as one gathering write takes."""
PRODUCER_POSITION = 43
"""The position of the producer's id and epoch in a batch."""
_PRODUCER = Struct(">qh")


def learn(
    services: BrokerServices,
    context: RequestContext,
    frame: bytearray,
    request: ParsedProduce,
    partition: Partition,
) -> None:
    """Remember a request whose records were appended to `partition`, if it may be repeated."""
    if not may_be_repeated(context.api_version, request) or services.authorizer.notes_grants:
        return
    if partition.log.config.schema_validation is not None:
        return  # each request must be checked
    generation = services.authorizer.generation
    if not may_write(services, context, request, partition):
        return  # an ACL has changed while the request waited
    state = client_state(context.connection)
    if state.checked_produce is not None and not state.checked_produce.done():
        return  # those that repeat this one would overtake the requests that wait
    repeated = state.repeated
    if not isinstance(repeated, RepeatedProduce):
        repeated = state.repeated = RepeatedProduce(services)
    repeated.shapes.learn(frame, context.api_version, request, partition, generation)


class RepeatedProduce:
    """The `RepeatedRequests` of a connection that produces."""

    __slots__ = ("_services", "shapes")

    def __init__(self, services: BrokerServices) -> None:
        self._services = services
        self.shapes = ProduceShapes()

    def answer(  # noqa: C901  # one function, since each call costs as much as a check
        self, connection: Connection, frame: bytearray, *, alone: bool = False
    ) -> Sequence[Part] | Reply | None:
        """As `handle_produce` for a whole frame that repeats an earlier one; None: it does not.

        The requests behind it that have arrived already, and repeat it too, are answered with it,
        unless it is to be answered `alone`.
        """
        repeated = self.shapes.find(frame)
        if repeated is None:
            return None
        shape, start, end = repeated
        partition = shape.partition
        log = partition.log
        if (
            shape.generation != self._services.authorizer.generation
            or partition.leader_id != partition.node_id
            or log.is_closed
            or log.log_directory.is_offline
            or log.config.schema_validation is not None
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
        now_ms = self._services.clock.now_ms()
        checked = None
        if is_compressed(records):
            if not self._services.decompression.is_good(records, log.config, now_ms):
                return None
            checked = CheckedBatch(log.config)
        elif is_long(records, log.config, now_ms):
            return None
        is_decompressed = checked is not None
        try:
            if connection.frames and not alone:
                frames = [frame]
                first_offsets = partition.append_alone(
                    self._with_next(connection, shape, frames, records, now_ms),
                    now_ms,
                    are_decompressed=is_decompressed,
                )
                if first_offsets:
                    if not connection.is_closed:
                        for _ in range(len(first_offsets) - 1):
                            connection.frames.popleft()
                    return list(map(shape.respond, frames, first_offsets))
            else:
                first_offsets = partition.append_alone(
                    (records,), now_ms, are_decompressed=is_decompressed
                )
                if first_offsets:
                    return (shape.respond(frame, first_offsets[0]),)
            result = partition.append(records, now_ms, terms=terms, checked=checked)
        except LogDirFailure:
            return None  # the general way finds the directory offline, and says so
        if not result.error and (
            partition.high_watermark > result.last_offset
            or (shape.acks != ACKS_ALL and partition.stored_offset > result.last_offset)
        ):
            return (shape.respond(frame, result.first_offset, result.log_append_time_ms),)
        if not result.error:
            waiting = RepeatedWait(self._services, connection, shape, frame, result)
            return waiting.start(result.last_offset + 1)
        context = repeated_context(connection, frame)
        outcome = Outcome(self._services, context, shape.acks)
        outcome.begin(shape.topic)
        outcome.take(partition, shape.index, result)
        return outcome.finish(shape.timeout_ms)

    def _with_next(
        self,
        connection: Connection,
        shape: Shape,
        frames: list[bytearray],
        records: memoryview,
        now_ms: int,
    ) -> Iterator[memoryview]:
        """`records`, then those of the next frames that repeat `shape`; adds to `frames`.

        Either all are compressed, and good, or none is.
        """
        find = self.shapes.find
        decompression, config = self._services.decompression, shape.partition.log.config
        are_compressed = is_compressed(records)
        yield records
        for frame in islice(connection.frames, RUN_MAX):
            try:
                others = find(frame)
            except DecodeError:
                return  # it will be found again when its turn comes
            if others is None or others[0] is not shape:
                return
            records = memoryview(frame)[others[1] : others[2]]
            if (
                is_transactional(records) is not shape.is_transactional
                or is_compressed(records) is not are_compressed
                or (
                    not decompression.is_good(records, config, now_ms)
                    if are_compressed
                    else is_long(records, config, now_ms)
                )
            ):
                return
            frames.append(frame)
            yield records


def _is_under_way(
    connection: Connection, log: PartitionLog, frame: bytearray, start: int, end: int
) -> bool:
    """Return whether the batch from `start` to `end` is part of a transaction that has begun here.

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
