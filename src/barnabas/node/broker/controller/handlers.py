"""Handlers of the controller's listener, for the quorum, brokers, and admin tools that ask it
directly.

All of it is decided by the quorum's leader; any other node says so, and who leads.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from barnabas.base.clock import Clock
from barnabas.node.broker.apis.acls import handle_describe_acls
from barnabas.node.broker.apis.alter_configs import EACH_CHANGE
from barnabas.node.broker.apis.cluster import (
    CONTROLLERS,
    EACH_QUORUM,
    handle_api_versions,
    refuse_version,
)
from barnabas.node.broker.apis.config_resources import check_cordoned_by_controller
from barnabas.node.broker.apis.describe_configs import EACH_RESOURCE, handle_describe_configs
from barnabas.node.broker.apis.logins import handle_sasl_authenticate, handle_sasl_handshake
from barnabas.node.broker.apis.tokens import may_ask_for_tokens
from barnabas.node.broker.authorization import may
from barnabas.node.broker.authorized_operations import NOT_ASKED, cluster_operations
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import asker_of
from barnabas.node.broker.controller.versions import fit
from barnabas.node.broker.in_parts import Each, decided_in_parts
from barnabas.node.broker.route import Route, route
from barnabas.node.broker.throttling import Throttling
from barnabas.node.metadata.active_controller import ActiveController
from barnabas.node.metadata.asker import Asker
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.envelope import seal_response, unseal
from barnabas.node.metadata.image import MetadataImage
from barnabas.node.metadata.node import MetadataNode
from barnabas.node.net.connection import Connection
from barnabas.node.raft.interfaces import NotLeaderError
from barnabas.node.security.authorizer import ALLOW_ALL, Authorizer
from barnabas.protocol import apis
from barnabas.protocol.acls import Operation, ResourceType
from barnabas.protocol.api import Api, ApiKey
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages import configs
from barnabas.protocol.messages.connections import EnvelopeRequest, EnvelopeResponse
from barnabas.protocol.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.nodes import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from barnabas.protocol.schema import Message, Struct


@dataclass(slots=True)
class ControllerServices:
    """One per node that plays `controller`; its handlers get it with every request."""

    clock: Clock
    random: random.Random
    cluster_id: str
    node_id: int
    metadata: MetadataNode
    authorizer: Authorizer = ALLOW_ALL
    """Decides whether the sender of a request may do what it asks."""
    throttling: Throttling | None = None
    """Set while any client has a quota."""
    served_apis: set[ApiKey] = field(default_factory=set)

    @property
    def image(self) -> MetadataImage:
        """The cluster's metadata as this node has it."""
        return self.metadata.image


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


Request = TypeVar("Request", configs.AlterConfigsRequest, configs.IncrementalAlterConfigsRequest)
Answer = TypeVar("Answer", bound=Struct)


def without_refused(
    image: MetadataImage, request: Request, answer_class: type[Answer]
) -> tuple[Request, list[Answer]]:
    """The request without what a controller may not change, and answers for the resources left out.

    `answer_class` is the response's struct for one resource.
    """
    refused: dict[tuple[int, str], Answer] = {}
    for resource in request.resources:
        reason = check_cordoned_by_controller(image, resource)
        if reason is not None:
            key = (resource.resource_type, resource.resource_name)
            refused[key] = answer_class(
                error_code=ErrorCode.INVALID_CONFIG,
                error_message=reason,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
    if not refused:
        return request, []
    left = type(request)(validate_only=request.validate_only)
    left.resources = [
        resource
        for resource in request.resources
        if (resource.resource_type, resource.resource_name) not in refused
    ]
    return left, list(refused.values())


Req = TypeVar("Req", bound=Message)
Resp = TypeVar("Resp", bound=Message)


@contextmanager
def _while_the_log_serves(services: ControllerServices) -> Iterator[None]:
    """Close the connection, and log nothing, where the metadata log has failed.

    That is logged once, and ends the node; each request would log it again.
    """
    try:
        yield
    except NotLeaderError:
        raise
    except Exception as error:
        if error is services.metadata.raft.failure:
            raise ConnectionAbortedError("the node ends") from None
        raise


def _quorum_route(api: Api[Req, Resp]) -> Route[ControllerServices]:
    """Route one of the quorum's own APIs to the replica of the metadata log."""

    async def handle_quorum(
        services: ControllerServices, context: RequestContext, request: Req
    ) -> Resp:
        """The connection is closed once the replica has stopped."""
        if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
            refused: Resp = refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return refused
        try:
            with _while_the_log_serves(services):
                response = await services.metadata.raft.handle(request, context.api_version)
        except NotLeaderError as error:
            raise ConnectionAbortedError("the node ends") from error
        assert isinstance(response, api.response)
        return response

    return route(api, handle_quorum)


def _decision_route(api: Api[Req, Resp], each: Each | None = None) -> Route[ControllerServices]:
    """Route an API to the active controller, which decides it; `each` is as for `route`."""

    async def handle_decision(
        services: ControllerServices, context: RequestContext, request: Req
    ) -> Resp:
        return await decide(services, context, request, api.response)

    return route(api, handle_decision, each=each)


def _token_route(api: Api[Req, Resp]) -> Route[ControllerServices]:
    """Route a request for a delegation token that comes from a client itself."""

    async def handle_token(
        services: ControllerServices, context: RequestContext, request: Req
    ) -> Resp:
        if may_ask_for_tokens(context):
            return await decide(services, context, request, api.response)
        response = refuse(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        assert isinstance(response, api.response)
        return response

    return route(api, handle_token)


async def decide(
    services: ControllerServices,
    context: RequestContext,
    request: Message,
    response_class: type[Resp],
) -> Resp:
    """Have the active controller decide; any other controller answers NOT_CONTROLLER."""
    try:
        response = await _decide_for(services, asker_of(context), request)
    except NotLeaderError:
        response = refuse(request, ErrorCode.NOT_CONTROLLER)
    assert isinstance(response, response_class)
    return fit(response, context.api_version)


def _configs_route(api: Api[Req, Resp]) -> Route[ControllerServices]:
    """Route changes of configurations, asked for here and not of the broker they belong to."""

    async def handle_alter_configs_at_controller(
        services: ControllerServices, context: RequestContext, request: Any
    ) -> Any:
        passed_on, refused = without_refused(
            services.image, request, configs.AlterConfigsResourceResponse
        )
        response: Any = await decided_in_parts(
            EACH_CHANGE, passed_on, lambda part: decide(services, context, part, api.response)
        )
        response.responses += refused
        return response

    return route(api, handle_alter_configs_at_controller)


@dataclass(frozen=True, slots=True)
class _ConnectionLost:
    """Tells the controller that the connection of a broker's heartbeats has ended.

    Those of all its heartbeats are equal, so that the connection keeps one.
    """

    controller: ActiveController
    broker_id: int
    broker_epoch: int

    def __call__(self, _: Connection) -> None:
        self.controller.connection_lost(self.broker_id, self.broker_epoch)


async def handle_broker_heartbeat(
    services: ControllerServices, context: RequestContext, request: BrokerHeartbeatRequest
) -> BrokerHeartbeatResponse:
    """A broker's heartbeat; the end of its connection is a sign too."""
    controller = services.metadata.controller
    response = await decide(services, context, request, BrokerHeartbeatResponse)
    if response.error_code == ErrorCode.NONE and controller is not None:
        lost = _ConnectionLost(controller, request.broker_id, request.broker_epoch)
        context.connection.when_closed(lost)
    return response


async def handle_envelope(
    services: ControllerServices, context: RequestContext, request: EnvelopeRequest
) -> EnvelopeResponse:
    """A client's request that a broker passed on, decided for the client.

    So the sender of the envelope says who that is, and must be a node of the cluster.
    """
    if not may(services, context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER):
        return EnvelopeResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    try:
        api, header, inner, asker = unseal(request)
    except DecodeError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    if api.key not in FORWARDED:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    try:
        response = await _decide_for(services, asker, inner)
    except NotLeaderError:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return seal_response(api, header, fit(response, header.request_api_version))


async def _decide_for(services: ControllerServices, asker: Asker, request: Message) -> Message:
    """The controller's decision for the requester, within the request's time-out.

    Raises NotLeaderError where another node decides.
    """
    timeout_ms = getattr(request, "timeout_ms", 0)
    try:
        with _while_the_log_serves(services):
            response: Message = await services.metadata.decide_here(
                request, asker=asker, timeout_ms=timeout_ms if timeout_ms > 0 else None
            )
    except TimeoutError:
        response = refuse(request, ErrorCode.REQUEST_TIMED_OUT)
    return response


FORWARDED = frozenset(
    {
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.CREATE_ACLS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_ACLS,
        ApiKey.DELETE_TOPICS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ELECT_LEADERS,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.UPDATE_FEATURES,
    }
)
"""Requests that brokers forward in envelopes, and that clients may send here directly too."""

CONTROLLER_ROUTES: tuple[Route[ControllerServices], ...] = (
    _quorum_route(apis.FETCH),
    route(apis.SASL_HANDSHAKE, handle_sasl_handshake),
    route(apis.API_VERSIONS, handle_api_versions, refuse_version),
    _decision_route(apis.CREATE_TOPICS),
    _decision_route(apis.DELETE_TOPICS),
    route(apis.DESCRIBE_ACLS, handle_describe_acls),
    _decision_route(apis.CREATE_ACLS),
    _decision_route(apis.DELETE_ACLS),
    route(apis.DESCRIBE_CONFIGS, handle_describe_configs, each=EACH_RESOURCE),
    _configs_route(apis.ALTER_CONFIGS),
    route(apis.SASL_AUTHENTICATE, handle_sasl_authenticate),
    _decision_route(apis.CREATE_PARTITIONS),
    _token_route(apis.CREATE_DELEGATION_TOKEN),
    _token_route(apis.RENEW_DELEGATION_TOKEN),
    _token_route(apis.EXPIRE_DELEGATION_TOKEN),
    _decision_route(apis.ELECT_LEADERS),
    _configs_route(apis.INCREMENTAL_ALTER_CONFIGS),
    _decision_route(apis.ALTER_PARTITION_REASSIGNMENTS),
    _decision_route(apis.LIST_PARTITION_REASSIGNMENTS),
    _decision_route(apis.ALTER_CLIENT_QUOTAS),
    _decision_route(apis.ALTER_USER_SCRAM_CREDENTIALS),
    _quorum_route(apis.VOTE),
    _quorum_route(apis.BEGIN_QUORUM_EPOCH),
    _quorum_route(apis.END_QUORUM_EPOCH),
    _decision_route(apis.DESCRIBE_QUORUM, EACH_QUORUM),
    _decision_route(apis.ALTER_PARTITION),
    _decision_route(apis.UPDATE_FEATURES),
    route(apis.ENVELOPE, handle_envelope),
    _quorum_route(apis.FETCH_SNAPSHOT),
    route(apis.DESCRIBE_CLUSTER, handle_describe_cluster_at_controller),
    _decision_route(apis.BROKER_REGISTRATION),
    route(apis.BROKER_HEARTBEAT, handle_broker_heartbeat),
    _decision_route(apis.UNREGISTER_BROKER),
    _decision_route(apis.ALLOCATE_PRODUCER_IDS),
    _decision_route(apis.CONTROLLER_REGISTRATION),
    _decision_route(apis.ASSIGN_REPLICAS_TO_DIRS),
    _decision_route(apis.ADD_RAFT_VOTER),
    _decision_route(apis.REMOVE_RAFT_VOTER),
    _quorum_route(apis.UPDATE_RAFT_VOTER),
)
