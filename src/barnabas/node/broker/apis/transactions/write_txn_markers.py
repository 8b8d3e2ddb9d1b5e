"""WriteTxnMarkers (key 27), versions 1-2: KIP-98, 664, 1228.

A transaction coordinator has this node end transactions in partitions that it leads. So do
administrators who abort a transaction that hangs.
"""

from collections.abc import Awaitable

from barnabas.node.broker.authorization import may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.transactions import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)


def handle_write_txn_markers(
    services: BrokerServices, context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
    """Write markers; the answer comes when they are committed."""
    cluster = ResourceType.CLUSTER
    if not (
        may(services, context, Operation.ALTER, cluster, logs_denial=False)
        or may(services, context, Operation.CLUSTER_ACTION, cluster)
    ):
        return _refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return services.marker_writer.write(request)


def _refuse(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
