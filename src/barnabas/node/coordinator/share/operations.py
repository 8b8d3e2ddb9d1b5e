"""The five requests for share-partitions, each as data: how to ask, answer and understand it.

A request names many share-partitions of one group. The coordinator's node takes it apart with
these (`serve`), and a persister puts one together for another node.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from barnabas.base.ids import Uuid
from barnabas.node.coordinator.share.service import ShareCoordinator
from barnabas.node.coordinator.share.state import (
    DONE,
    Failure,
    SharePartitionKey,
    ShareState,
    ShareSummary,
    StateBatch,
)
from barnabas.node.loop.pauses import in_turns
from barnabas.node.loop.promise import Promise, gather
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import share_state
from barnabas.protocol.schema import Message

PART_QUESTIONS_MAX: Final = 500

Resp = TypeVar("Resp", bound=Message, covariant=True)


class _Question(Protocol):
    partition: int


class _Topic(Protocol):
    topic_id: Uuid

    @property
    def partitions(self) -> Sequence[_Question]: ...


class _Request(Protocol):
    group_id: str

    @property
    def topics(self) -> Sequence[_Topic]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Operation(Generic[Resp]):
    """One of the requests. A *question* is its struct for one partition, a *result* the answer's.

    `read` turns a result without an error into an outcome, `tell` an outcome into a result.
    """

    name: str
    request: Callable[..., Message]
    request_topic: Callable[..., Any]
    ask: Callable[[ShareCoordinator, SharePartitionKey, Any], Any]
    response: Callable[..., Resp]
    response_topic: Callable[..., Any]
    result: Callable[..., Any]
    tell: Callable[[Any, Any], None]
    read: Callable[[Any], Any]
    takes_topics_without_partitions: bool = False
    answers_once: bool = False
    """True if a share-partition that a request names repeatedly is answered once: its state may be
    many times as large as the question."""


def serve(
    operation: Operation[Resp], coordinator: ShareCoordinator, request: _Request
) -> Resp | Awaitable[Resp]:
    """Handle a whole request. Nonsensical requests get an empty answer, as in Kafka.

    Other requests are served in between where this one has more than `PART_QUESTIONS_MAX`
    questions.
    """
    topics = request.topics
    if (
        not request.group_id
        or not topics
        or not (
            operation.takes_topics_without_partitions or all(topic.partitions for topic in topics)
        )
    ):
        return operation.response()
    questions = [(topic.topic_id, question) for topic in topics for question in topic.partitions]
    if operation.answers_once:
        asked = {(topic_id, question.partition): question for topic_id, question in questions}
        questions = [(topic_id, question) for (topic_id, _), question in asked.items()]

    def ask(topic_id: Uuid, question: _Question) -> Any:
        key = SharePartitionKey(request.group_id, topic_id, question.partition)
        return operation.ask(coordinator, key, question)

    results: dict[Uuid, list[Any]] = {}

    def add(topic_id: Uuid, question: _Question, outcome: Any) -> None:
        result = operation.result(partition=question.partition)
        if isinstance(outcome, Failure):
            result.error_code = outcome.error
            result.error_message = outcome.message
        else:
            operation.tell(result, outcome)
        results.setdefault(topic_id, []).append(result)

    def response() -> Resp:
        return operation.response(
            results=[
                operation.response_topic(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in results.items()
            ]
        )

    def combine(outcomes: list[Any]) -> Resp:
        for (topic_id, question), outcome in zip(questions, outcomes, strict=True):
            add(topic_id, question, outcome)
        return response()

    async def in_parts() -> Resp:
        parts = [ask(*question) async for question in in_turns(questions, PART_QUESTIONS_MAX)]
        async for question, part in in_turns(
            zip(questions, parts, strict=True), PART_QUESTIONS_MAX
        ):
            add(*question, await part if isinstance(part, Promise) else part)
        return response()

    if len(questions) > PART_QUESTIONS_MAX:
        return in_parts()
    return gather([ask(*question) for question in questions], combine)


def refuse(operation: Operation[Resp], request: _Request, error: ErrorCode) -> Resp:
    """The same error for every share-partition of a request."""
    return operation.response(
        results=[
            operation.response_topic(
                topic_id=topic.topic_id,
                partitions=[
                    operation.result(
                        partition=question.partition,
                        error_code=error,
                        error_message=error.message,
                    )
                    for question in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def request_for(
    operation: Operation[Message], group_id: str, questions: Sequence[tuple[Uuid, Any]]
) -> Message:
    """One request with all `questions`, each with its topic."""
    topics: dict[Uuid, list[Any]] = {}
    for topic_id, question in questions:
        topics.setdefault(topic_id, []).append(question)
    return operation.request(
        group_id=group_id,
        topics=[
            operation.request_topic(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ],
    )


def outcomes_of(operation: Operation[Message], response: Any) -> dict[tuple[Uuid, int], Any]:
    """Outcomes by topic and partition."""
    outcomes: dict[tuple[Uuid, int], Any] = {}
    for topic in response.results:
        for result in topic.partitions:
            error = ErrorCode.of(result.error_code)
            outcomes[topic.topic_id, result.partition] = (
                Failure(error, result.error_message or error.message)
                if error
                else operation.read(result)
            )
    return outcomes


def _tell_state(result: share_state.ReadShareGroupStatePartitionResult, state: ShareState) -> None:
    result.state_epoch = state.state_epoch
    result.start_offset = state.start_offset
    result.state_batches = [batch.encoded() for batch in state.batches]


def _tell_summary(
    result: share_state.ReadShareGroupStateSummaryPartitionResult, summary: ShareSummary
) -> None:
    result.state_epoch = summary.state_epoch
    result.leader_epoch = summary.leader_epoch
    result.start_offset = summary.start_offset
    result.delivery_complete_count = summary.delivery_complete_count


def _tell_nothing(_result: Any, _outcome: Any) -> None:
    """Add nothing: the absence of an error is the whole answer."""


INITIALIZE: Final = Operation(
    name="initialize",
    request=share_state.InitializeShareGroupStateRequest,
    request_topic=share_state.InitializeStateData,
    ask=lambda coordinator, key, question: coordinator.initialize(
        key, question.state_epoch, question.start_offset
    ),
    response=share_state.InitializeShareGroupStateResponse,
    response_topic=share_state.InitializeStateResult,
    result=share_state.PartitionResult,
    tell=_tell_nothing,
    read=lambda _: DONE,
    takes_topics_without_partitions=True,
)
READ: Final = Operation(
    name="read",
    request=share_state.ReadShareGroupStateRequest,
    request_topic=share_state.ReadStateData,
    ask=lambda coordinator, key, question: coordinator.read(key, question.leader_epoch),
    response=share_state.ReadShareGroupStateResponse,
    response_topic=share_state.ReadStateResult,
    result=share_state.ReadShareGroupStatePartitionResult,
    tell=_tell_state,
    read=lambda result: ShareState(
        result.state_epoch, result.start_offset, tuple(map(StateBatch.of, result.state_batches))
    ),
    answers_once=True,
)
WRITE: Final = Operation(
    name="write",
    request=share_state.WriteShareGroupStateRequest,
    request_topic=share_state.WriteStateData,
    ask=lambda coordinator, key, question: coordinator.write(
        key,
        (question.state_epoch, question.leader_epoch),
        question.start_offset,
        question.delivery_complete_count,
        [StateBatch.of(batch) for batch in question.state_batches],
    ),
    response=share_state.WriteShareGroupStateResponse,
    response_topic=share_state.WriteStateResult,
    result=share_state.PartitionResult,
    tell=_tell_nothing,
    read=lambda _: DONE,
)
DELETE: Final = Operation(
    name="delete",
    request=share_state.DeleteShareGroupStateRequest,
    request_topic=share_state.DeleteStateData,
    ask=lambda coordinator, key, _: coordinator.delete(key),
    response=share_state.DeleteShareGroupStateResponse,
    response_topic=share_state.DeleteStateResult,
    result=share_state.PartitionResult,
    tell=_tell_nothing,
    read=lambda _: DONE,
)
SUMMARY: Final = Operation(
    name="read the summary of",
    request=share_state.ReadShareGroupStateSummaryRequest,
    request_topic=share_state.ReadStateSummaryData,
    ask=lambda coordinator, key, _: coordinator.summary(key),
    response=share_state.ReadShareGroupStateSummaryResponse,
    response_topic=share_state.ReadStateSummaryResult,
    result=share_state.ReadShareGroupStateSummaryPartitionResult,
    tell=_tell_summary,
    read=lambda result: ShareSummary(
        result.state_epoch,
        result.leader_epoch,
        result.start_offset,
        result.delivery_complete_count,
    ),
    answers_once=True,
)
