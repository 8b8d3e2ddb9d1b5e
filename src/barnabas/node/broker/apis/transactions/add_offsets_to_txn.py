"""AddOffsetsToTxn (key 25), versions 0-4: KIP-98.

Makes the partition of `__consumer_offsets` that holds a group's offsets part of a transaction.
With transaction.version 2 clients leave it out: TxnOffsetCommit sees to it (KIP-890).
"""

from collections.abc import Awaitable

from barnabas.base.ids import TopicPartition
from barnabas.base.internal_topics import CONSUMER_OFFSETS
from barnabas.node.broker.apis.transactions.requests import fenced_as
from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.promise import then
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

PRODUCER_FENCED_FROM_VERSION = 2


def handle_add_offsets_to_txn(
    services: BrokerServices, context: RequestContext, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse | Awaitable[AddOffsetsToTxnResponse]:
    """Add the group's partition to the transaction."""
    error = _forbidden(services, context, request)
    if error:
        return AddOffsetsToTxnResponse(error_code=error)
    partition = services.groups.partition_for(request.group_id)
    added = services.transactions.add_partitions(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [TopicPartition(CONSUMER_OFFSETS, partition)],
        0,
    )
    return then(
        added,
        lambda error: AddOffsetsToTxnResponse(
            error_code=fenced_as(context, error, PRODUCER_FENCED_FROM_VERSION)
        ),
    )


def _forbidden(
    services: BrokerServices, context: RequestContext, request: AddOffsetsToTxnRequest
) -> ErrorCode:
    transactional_id = request.transactional_id
    if not may(services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if not may(services, context, Operation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE
