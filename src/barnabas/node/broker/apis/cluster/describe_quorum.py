"""DescribeQuorum (key 55), versions 0-2: KIP-595, 836, 853. Answered by the quorum's leader."""

from operator import attrgetter

from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.in_parts import Each
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.messages.voters import (
    DescribeQuorumRequest,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)


def _ask_more(topic: DescribeQuorumRequestTopicData, again: DescribeQuorumRequestTopicData) -> None:
    topic.partitions += again.partitions


EACH_QUORUM = Each("topics", "topics", attrgetter("topic_name"), _ask_more)


async def handle_describe_quorum(
    services: BrokerServices, context: RequestContext, request: DescribeQuorumRequest
) -> DescribeQuorumResponse:
    """Voters and observers of the metadata log, and how far each has it."""
    response: DescribeQuorumResponse = await ask_controller(services, context, request)
    return response
