"""The answer to a produce request: plain figures mostly, in full where there is more to say."""

from barnabas.base.ids import Uuid
from barnabas.base.network import Part
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.current_leader import HINTED, addresses, current_leader
from barnabas.node.broker.produce.codec import (
    FLEXIBLE_FROM,
    TOPIC_ID_FROM,
    PartitionAnswer,
    encode_answers,
)
from barnabas.node.broker.responses import frame_small_response, respond_instead
from barnabas.node.broker.responses import respond as respond_message
from barnabas.node.broker.services import BrokerServices
from barnabas.node.log.partition_log import AppendResult
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
Leaders = dict[tuple[str | Uuid, int], tuple[int, int]]
"""(leader, leader epoch) of partitions whose answer tells them."""


def respond(
    services: BrokerServices, context: RequestContext, answers: Answers, messages: Messages
) -> list[Part]:
    """The parts of the whole frame."""
    version = context.api_version
    flexible = version >= FLEXIBLE_FROM
    leaders: Leaders = {}
    if version >= LEADER_HINTS_FROM:
        leaders = {
            (topic, answer.partition): current_leader(services, topic, answer.partition)
            for topic, topic_answers in answers
            for answer in topic_answers
            if answer.error and answer.error in HINTED
        }
    if not messages and not leaders:
        try:
            body = encode_answers(version, answers)
        except Exception:  # noqa: BLE001  # our own fault: it is logged, and the client told
            return respond_instead(context, _in_full(services, context, answers, messages, leaders))
        return frame_small_response(context.correlation_id, flexible, body)
    return respond_message(context, _in_full(services, context, answers, messages, leaders))


def _in_full(
    services: BrokerServices,
    context: RequestContext,
    answers: Answers,
    messages: Messages,
    leaders: Leaders,
) -> ProduceResponse:
    version = context.api_version
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                **({"topic_id": topic} if version >= TOPIC_ID_FROM else {"name": topic}),  # type: ignore[arg-type]  # one of two types by version
                partition_responses=[
                    _partition_in_full(
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


def _partition_in_full(
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
