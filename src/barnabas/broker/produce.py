"""Produce (key 0), versions 3-13: KIP-98, 226, 360, 467, 516, 951.

Each batch is validated, gets its offsets in place and goes to the log as the slice of the frame
that it is. `acks=0` is never answered (a failure closes the connection, as in Kafka), `acks=1`
when this replica has stored the records (Kafka's leader waits for an fsync too where
`flush.messages` asks for it), `acks=all` when the high watermark has passed them.
"""

import logging
from collections.abc import Sequence

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.broker.client_state import client_state
from barnabas.broker.context import RequestContext
from barnabas.broker.produce_again import ProduceShapes
from barnabas.broker.produce_answers import Answers, Messages, respond
from barnabas.broker.produce_codec import (
    TOPIC_ID_FROM,
    ParsedProduce,
    PartitionAnswer,
    ProducePartition,
    parse_produce,
)
from barnabas.broker.produce_waits import (
    ACKS_ALL,
    VERSION_AND_CORRELATION,
    ProduceWait,
    RepeatedWait,
)
from barnabas.broker.services import BrokerServices
from barnabas.log.errors import LogDirFailure
from barnabas.log.partition_log import AppendResult
from barnabas.net.connection import Connection, Reply
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import TRANSACTIONAL_MASK
from barnabas.replication.partition import Partition

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
ADMIN_CLIENT_ID = "__admin_client"
ATTRIBUTES_AT = 22
"""Where the byte of a batch's attributes is that has all that are defined."""

telemetry = logging.getLogger(__name__)


def handle(
    services: BrokerServices, context: RequestContext, frame: bytearray, position: int
) -> Sequence[Part] | Reply:
    """Append what the request holds; raises DecodeError for a malformed one."""
    version = context.api_version
    request = parse_produce(frame, position, version)
    view = memoryview(frame)
    by_id = version >= TOPIC_ID_FROM
    now_ms = services.clock.now_ms()
    outcome = Outcome(services, context, request.acks)
    found: Partition | ErrorCode = ErrorCode.NONE
    for topic, partitions in request.topics:
        outcome.begin(topic)
        for entry in partitions:
            found = _find(services, context, request, topic, entry, by_id)
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
    """As `handle` for a whole frame that repeats an earlier one; None: it does not."""
    repeated = shapes.find(frame)
    if repeated is None:
        return None
    shape, start, end = repeated
    partition = shape.partition
    log = partition.log
    if (
        partition.leader_id != partition.node_id
        or log.is_offline
        or (
            shape.acks == ACKS_ALL
            and partition.isr_size < log.config.min_insync_replicas
            and partition.is_under_min_isr
        )
    ):
        return None
    records = memoryview(frame)[start:end]
    if _is_transactional(records):
        return None
    now_ms = services.clock.now_ms()
    try:
        result = partition.append(records, now_ms)
    except LogDirFailure:
        return None  # the general way finds the directory offline, and says so
    if not result.error and (
        partition.high_watermark > result.last_offset
        or (shape.acks != ACKS_ALL and partition.stored_offset > result.last_offset)
    ):
        return (shape.respond(frame, result),)
    if not result.error:
        waiting = RepeatedWait(services, connection, shape, frame, result)
        return waiting.start(result.last_offset + 1)
    version, correlation_id = VERSION_AND_CORRELATION.unpack_from(frame, 2)
    context = RequestContext(ApiKey.PRODUCE, version, correlation_id, None, connection)
    outcome = Outcome(services, context, shape.acks)
    outcome.begin(shape.topic)
    outcome.take(partition, shape.index, result)
    return outcome.finish(shape.timeout_ms)


class Outcome:
    """What became of a request, partition by partition."""

    __slots__ = (
        "_acks",
        "_answers",
        "_context",
        "_messages",
        "_services",
        "_topic",
        "_topic_answers",
        "_wait",
        "has_errors",
    )

    def __init__(self, services: BrokerServices, context: RequestContext, acks: int) -> None:
        self._services = services
        self._context = context
        self._acks = acks
        self._answers: Answers = []
        self._messages: Messages = {}
        self._wait: ProduceWait | None = None
        self._topic: str | Uuid = ""
        self._topic_answers: list[PartitionAnswer] = []
        self.has_errors = False

    def begin(self, topic: str | Uuid) -> None:
        """The partitions that follow are of `topic`."""
        self._topic = topic
        self._topic_answers = []
        self._answers.append((topic, self._topic_answers))

    def append(self, partition: Partition, index: int, records: memoryview, now_ms: int) -> None:
        """Append one partition's records and note what became of them."""
        if _is_transactional(records):
            self.refuse(index, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            return
        try:
            result = partition.append(records, now_ms)
        except LogDirFailure as failure:
            telemetry.error("%s cannot be appended to: %s", partition.topic_partition, failure)
            self.refuse(index, ErrorCode.KAFKA_STORAGE_ERROR)
            return
        self.take(partition, index, result)

    def refuse(self, index: int, error: ErrorCode) -> None:
        """Note that nothing was appended."""
        self.has_errors = True
        self._topic_answers.append(PartitionAnswer(index, error, -1, -1, -1))

    def take(self, partition: Partition, index: int, result: AppendResult) -> None:
        """Note what an append returned."""
        if result.error:
            if result.message or result.record_errors:
                self._messages[self._topic, index] = result
            self.refuse(index, result.error)
            return
        end_offset = result.last_offset + 1
        if (
            self._acks
            and partition.high_watermark < end_offset
            and (self._acks == ACKS_ALL or partition.stored_offset < end_offset)
        ):
            if self._wait is None:
                self._wait = ProduceWait(self._services, self._context, self._acks)
            self._wait.add(partition, end_offset, self._topic_answers)
        self._topic_answers.append(
            PartitionAnswer(
                index,
                result.error,
                result.first_offset,
                result.log_append_time_ms,
                partition.log.log_start_offset,
            )
        )

    def finish(self, timeout_ms: int) -> Sequence[Part] | Reply:
        """The answer, or the wait for it."""
        if self._acks == 0:
            if self.has_errors:
                _close_unanswered(self._context, self._answers)
            return ()
        if self._wait is not None:
            return self._wait.start(self._answers, self._messages, timeout_ms)
        return respond(self._services, self._context, self._answers, self._messages)


def _find(
    services: BrokerServices,
    context: RequestContext,
    request: ParsedProduce,
    topic: str | Uuid,
    entry: ProducePartition,
    by_id: bool,
) -> Partition | ErrorCode:
    """The partition that shall take the records, or why it must not."""
    if not -1 <= request.acks <= 1:
        return ErrorCode.INVALID_REQUIRED_ACKS
    if by_id:
        assert isinstance(topic, bytes)
        found = services.replicas.find_by_id(topic, entry.partition)
    else:
        assert isinstance(topic, str)
        found = services.replicas.find(topic, entry.partition)
    if not isinstance(found, Partition):
        return found
    if found.topic_partition.topic in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not found.is_leader:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if entry.start < 0 or entry.start == entry.end:
        return ErrorCode.INVALID_RECORD
    if request.transactional_id is not None:
        return ErrorCode.INVALID_TXN_STATE
    if request.acks == ACKS_ALL and found.is_under_min_isr:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return found


def _is_transactional(records: memoryview) -> bool:
    """Whether a batch is part of a transaction: nobody would ever end one of no known id."""
    return len(records) > ATTRIBUTES_AT and records[ATTRIBUTES_AT] & TRANSACTIONAL_MASK != 0


def _close_unanswered(context: RequestContext, answers: Answers) -> None:
    """Without answers, closing the connection is how the producer learns of a failure."""
    for topic, topic_answers in answers:
        for answer in topic_answers:
            if answer.error:
                host, error = context.client_host, answer.error.name
                telemetry.info("closing %s: acks=0 and %s for %r", host, error, topic)
                context.connection.close()
                return
