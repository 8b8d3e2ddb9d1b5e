"""Produce (key 0), versions 3-13: KIP-98, 226, 360, 467, 516, 951.

Each batch is validated, gets its offsets in place and goes to the log as the slice of the frame
that it is. `acks=0` is never answered (a failure closes the connection, as in Kafka), `acks=1`
when this replica has stored the records (Kafka's leader waits for an fsync too where
`flush.messages` asks for it), `acks=all` when the high watermark has passed them.
"""

import logging
from collections.abc import Sequence
from struct import Struct

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.broker.client_state import client_state
from barnabas.broker.context import RequestContext
from barnabas.broker.leader_hints import HINTED, addresses, current_leader
from barnabas.broker.produce_again import ProduceShapes
from barnabas.broker.produce_codec import (
    FLEXIBLE_FROM,
    TOPIC_ID_FROM,
    ParsedProduce,
    PartitionAnswer,
    ProducePartition,
    encode_answers,
    parse_produce,
)
from barnabas.broker.responses import frame_response, frame_small_response
from barnabas.broker.services import BrokerServices
from barnabas.log.errors import LogDirFailure
from barnabas.log.partition_log import AppendResult
from barnabas.net.connection import Connection, Reply
from barnabas.protocol.apis import ApiKey
from barnabas.protocol.codec import encode_parts
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.protocol.records.batch import TRANSACTIONAL_MASK
from barnabas.replication.partition import Partition

ACKS_ALL = -1
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
ADMIN_CLIENT_ID = "__admin_client"
LEADER_HINTS_FROM = 10
ATTRIBUTES_AT = 22
"""Where the byte of a batch's attributes is that has all that are defined."""
_VERSION_AND_CORRELATION = Struct(">hi")

telemetry = logging.getLogger(__name__)

Messages = dict[tuple[str | Uuid, int], AppendResult]
"""Partitions whose answer says more than a code."""
Answers = list[tuple[str | Uuid, list[PartitionAnswer]]]


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
    version, correlation_id = _VERSION_AND_CORRELATION.unpack_from(frame, 2)
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
        return _respond(self._services, self._context, self._answers, self._messages)


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


def _respond(
    services: BrokerServices, context: RequestContext, answers: Answers, messages: Messages
) -> list[Part]:
    version = context.api_version
    flexible = version >= FLEXIBLE_FROM
    leaders: dict[tuple[str | Uuid, int], tuple[int, int]] = {}
    if version >= LEADER_HINTS_FROM:
        leaders = {
            (topic, answer.partition): current_leader(services, topic, answer.partition)
            for topic, topic_answers in answers
            for answer in topic_answers
            if answer.error and answer.error in HINTED
        }
    if not messages and not leaders:
        body = encode_answers(version, answers)
        return frame_small_response(context.correlation_id, flexible, body)
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                **({"topic_id": topic} if version >= TOPIC_ID_FROM else {"name": topic}),  # type: ignore[arg-type]  # one of two types by version
                partition_responses=[
                    _in_full(
                        answer,
                        messages.get((topic, answer.partition)),
                        leaders.get((topic, answer.partition)),
                    )
                    for answer in topic_answers
                ],
            )
            for topic, topic_answers in answers
        ],
        node_endpoints=[
            NodeEndpoint(**address._asdict())
            for address in addresses(
                services, [leader for leader, _ in leaders.values()], context.listener_name
            )
        ],
    )
    return frame_response(context.correlation_id, flexible, encode_parts(response, version))


def _in_full(
    answer: PartitionAnswer, result: AppendResult | None, leader: tuple[int, int] | None
) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=answer.partition,
        error_code=answer.error,
        base_offset=answer.base_offset,
        log_append_time_ms=answer.log_append_time_ms,
        log_start_offset=answer.log_start_offset,
    )
    if result is not None:
        response.error_message = result.message
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in result.record_errors
        ]
    if leader is not None:
        response.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
    return response


class ProduceWait:
    """A request to be answered whose records are appended but not yet committed."""

    __slots__ = (
        "_acks",
        "_answers",
        "_context",
        "_messages",
        "_pending",
        "_reply",
        "_services",
        "_timer",
    )

    def __init__(self, services: BrokerServices, context: RequestContext, acks: int) -> None:
        self._services = services
        self._context = context
        self._acks = acks
        self._pending: dict[PendingCommit, None] = {}
        self._reply = Reply()

    def add(self, partition: Partition, end_offset: int, answers: list[PartitionAnswer]) -> None:
        """Wait for `partition` to commit up to `end_offset`; its answer comes next in `answers`."""
        self._pending[PendingCommit(self, partition, end_offset, answers)] = None

    def start(self, answers: Answers, messages: Messages, timeout_ms: int) -> Reply:
        """Begin to wait; the reply is completed by the last commit or by the time-out."""
        self._answers = answers
        self._messages = messages
        self._timer = self._services.clock.call_later(max(timeout_ms, 0), self._expire)
        for pending in list(self._pending):
            if self._acks == ACKS_ALL:
                pending.partition.when_committed(pending.end_offset, pending)
            else:
                pending.partition.when_stored(pending.end_offset, pending)
        return self._reply

    def settled(self, pending: "PendingCommit") -> None:
        """One partition has its answer."""
        del self._pending[pending]
        if not self._pending:
            self._timer.cancel()
            self._reply.complete(
                _respond(self._services, self._context, self._answers, self._messages)
            )

    def verdict(self, partition: Partition, error: ErrorCode) -> ErrorCode:
        """What to answer: committed by fewer replicas than asked for is a failure too."""
        if not error and self._acks == ACKS_ALL and partition.has_too_few_replicas:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return error

    def _expire(self) -> None:
        for pending in list(self._pending):
            pending.partition.forget_commit_waiter(pending)
            pending(ErrorCode.REQUEST_TIMED_OUT)


class PendingCommit:
    """One partition of a `ProduceWait`; called when its fate is known."""

    __slots__ = ("_answers", "_position", "_wait", "end_offset", "partition")

    def __init__(
        self,
        wait: ProduceWait,
        partition: Partition,
        end_offset: int,
        answers: list[PartitionAnswer],
    ) -> None:
        self._wait = wait
        self.partition = partition
        self.end_offset = end_offset
        self._answers = answers
        self._position = len(answers)

    def __call__(self, error: ErrorCode) -> None:
        error = self._wait.verdict(self.partition, error)
        if error:
            index = self._answers[self._position].partition
            self._answers[self._position] = PartitionAnswer(index, error, -1, -1, -1)
        self._wait.settled(self)
