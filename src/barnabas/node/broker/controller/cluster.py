"""DescribeCluster (key 60) on the controller's listener, versions 1-2: KIP-919.

Names the controllers of the quorum for tools that were given --bootstrap-controller. Brokers are
described by brokers.
"""

from barnabas.node.broker.apis.cluster import CONTROLLERS
from barnabas.node.broker.authorization import may
from barnabas.node.broker.authorized_operations import NOT_ASKED, cluster_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.services import ControllerServices
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

ENDPOINT_TYPE_FROM = 1


def handle_describe_cluster_at_controller(
    services: ControllerServices, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Name the voters by their endpoint of the listener that was asked."""
    if request.endpoint_type != CONTROLLERS:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        response = DescribeClusterResponse(error_code=code, error_message=code.message)
        if context.api_version >= ENDPOINT_TYPE_FROM:
            response.endpoint_type = CONTROLLERS
        return response
    if not may(services, context, Operation.ALTER, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return DescribeClusterResponse(
            error_code=code, error_message=code.message, endpoint_type=CONTROLLERS
        )
    voters = services.metadata.raft.voters.by_id
    return DescribeClusterResponse(
        cluster_id=services.cluster_id,
        controller_id=services.metadata.controller_id,
        endpoint_type=CONTROLLERS,
        brokers=[
            DescribeClusterBroker(broker_id=voter_id, host=end.host, port=end.port, rack=None)
            for voter_id, voter in sorted(voters.items())
            for end in voter.endpoints
            if end.listener == context.listener_name
        ],
        cluster_authorized_operations=cluster_operations(services, context)
        if request.include_cluster_authorized_operations
        else NOT_ASKED,
    )
