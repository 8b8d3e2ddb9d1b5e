"""DescribeCluster (key 60), versions 0-2: KIP-700, 919, 1073.

Controllers are described by controllers: a broker's listener refuses to speak for them.
"""

from barnabas.node.broker.authorized_operations import NOT_ASKED, cluster_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def handle_describe_cluster(
    services: BrokerServices, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Name the cluster's brokers, fenced ones only if asked for."""
    if request.endpoint_type != BROKERS:
        code = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE
            if request.endpoint_type == CONTROLLERS
            else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        )
        return DescribeClusterResponse(
            error_code=code, error_message=code.message, endpoint_type=BROKERS
        )
    brokers = [
        DescribeClusterBroker(
            broker_id=broker.id,
            host=endpoint.host,
            port=endpoint.port,
            rack=broker.rack,
            is_fenced=broker.fenced,
        )
        for broker in services.image.brokers.values()
        if (request.include_fenced_brokers or not broker.fenced)
        and (endpoint := broker.listeners.get(context.listener_name)) is not None
    ]
    live = [broker.broker_id for broker in brokers if not broker.is_fenced]
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        # Any broker passes controller requests on, so any will do (KIP-590).
        controller_id=services.random.choice(live) if live else -1,
        brokers=brokers,
        cluster_authorized_operations=cluster_operations(services, context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
