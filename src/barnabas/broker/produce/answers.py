"""The answer to a produce request: plain figures mostly, in full where there is more to say."""

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.broker.context import RequestContext
from barnabas.broker.current_leader import HINTED, addresses, current_leader
from barnabas.broker.produce.codec import (
    FLEXIBLE_FROM,
    TOPIC_ID_FROM,
    PartitionAnswer,
    encode_answers,
)
from barnabas.broker.responses import frame_response, frame_small_response
from barnabas.broker.services import BrokerServices
from barnabas.log.partition_log import AppendResult
from barnabas.protocol.answers import encode_answer
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

LEADER_HINTS_FROM = 10

Messages = dict[tuple[str | Uuid, int], AppendResult]
"""Partitions whose answer says more than a code."""
Answers = list[tuple[str | Uuid, list[PartitionAnswer]]]


def respond(
    services: BrokerServices, context: RequestContext, answers: Answers, messages: Messages
) -> list[Part]:
    """The parts of the whole frame."""
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
    return frame_response(context.correlation_id, flexible, encode_answer(response, version))


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
