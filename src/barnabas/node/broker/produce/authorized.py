"""Authorization of produce requests.

Records need WRITE on their topic: partitions of other topics are refused, and the rest of the
request goes on. Records of a transaction need WRITE on its transactional id besides, or nothing of
the request is appended. Who may write is asked when the request arrives, as in Kafka: before it
is known whether a topic exists. Unknown topic ids are no secret.
"""

from barnabas.base.ids import Uuid
from barnabas.node.broker.authorization import current_grants
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.produce.codec import ParsedProduce
from barnabas.node.broker.produce.outcome import ATTRIBUTES_AT
from barnabas.node.broker.services import BrokerServices
from barnabas.node.replication.partition import Partition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import TRANSACTIONAL_MASK


def refuse_unauthorized(
    services: BrokerServices, context: RequestContext, request: ParsedProduce, frame: bytearray
) -> ParsedProduce:
    """The request, with the topics noted to which its sender may not write."""
    grants = current_grants(services, context)
    if grants is None:
        return request
    transactional_id = request.transactional_id
    if _has_transactional_records(request, frame) and (
        transactional_id is None or not grants.write_transactional_id.allows(transactional_id)
    ):
        failed = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return request._replace(refused={entry.topic: failed for entry in request.topics})
    refused: dict[str | Uuid, ErrorCode] = {}
    by_id = services.image.topics.by_id
    for topic, _ in request.topics:
        if isinstance(topic, str):
            name = topic
        else:
            image = by_id.get(topic)
            if image is None:
                refused[topic] = ErrorCode.UNKNOWN_TOPIC_ID
                continue
            name = image.name
        if not grants.write_topic.allows(name):
            refused[topic] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return request._replace(refused=refused) if refused else request


def _has_transactional_records(request: ParsedProduce, frame: bytearray) -> bool:
    for _, partitions in request.topics:
        for _, start, end in partitions:
            if start < 0 or end - start <= ATTRIBUTES_AT:
                continue
            if frame[start + ATTRIBUTES_AT] & TRANSACTIONAL_MASK:
                return True
    return False


def may_write(
    services: BrokerServices, context: RequestContext, request: ParsedProduce, partition: Partition
) -> bool:
    """Return whether such a request may write to `partition` now, within a transaction too."""
    grants = current_grants(services, context)
    return grants is None or (
        grants.write_topic.allows(partition.topic_partition.topic)
        and (
            request.transactional_id is None
            or grants.write_transactional_id.allows(request.transactional_id)
        )
    )
