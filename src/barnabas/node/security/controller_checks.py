"""The rights that requests to the controller need: an operation and a resource for each.

A check answers for what the asker may not have, and leaves the rest to the decision. A refused name
looks as if it did not exist if the requester may not describe it. A request
that no check is listed for is refused. Source: Kafka's ControllerApis and AclApis.
"""

from collections.abc import Awaitable, Callable, Collection
from copy import copy
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.base.ids import ZERO_UUID, Uuid
from barnabas.node.loop.pauses import in_turns
from barnabas.node.metadata.asker import Asker, DecideRequest
from barnabas.node.metadata.controller.refusals import refuse
from barnabas.node.metadata.image import ConfigResourceType, MetadataImage
from barnabas.node.security.authorizer import Authorizer, Caller
from barnabas.node.security.principal import Principal
from barnabas.protocol import apis
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.apis import API_OF
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import acls, configs, credentials
from barnabas.protocol.messages import topics as topics_messages
from barnabas.protocol.schema import Message

Complete: TypeAlias = Callable[[Any], Any]
"""Adds to the response what was refused before."""


class Left(NamedTuple):
    """The part of a request that passed the check."""

    request: Message
    complete: Complete | None = None


class Refused(NamedTuple):
    """Nothing is left of a request."""

    response: Any


class _Rights:
    """The rights of one requester."""

    __slots__ = ("_authorizer", "_caller", "image")

    def __init__(self, authorizer: Authorizer, caller: Caller, image: MetadataImage) -> None:
        self._authorizer = authorizer
        self._caller = caller
        self.image = image

    def may(
        self,
        operation: Operation,
        resource_type: ResourceType = ResourceType.CLUSTER,
        name: str = CLUSTER_NAME,
        *,
        logs_denial: bool = True,
    ) -> bool:
        return self._authorizer.allows(
            self._caller, operation, resource_type, name, logs_denial=logs_denial
        )

    async def topics(
        self, operation: Operation, names: Collection[str], *, logs_denial: bool = True
    ) -> set[str]:
        """Those of `names` with which the asker may do it."""
        return {
            name
            async for name in in_turns(names)
            if self.may(operation, ResourceType.TOPIC, name, logs_denial=logs_denial)
        }


class ControllerChecks:
    """A node's `RequestChecks`."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def decide(
        self, asker: Asker, request: Message, image: MetadataImage, decide: DecideRequest
    ) -> Any:
        checked = await self.check(asker, request, image)
        if isinstance(checked, Refused):
            return checked.response
        response = await decide(checked.request)
        return response if checked.complete is None else checked.complete(response)

    async def check(self, asker: Asker, request: Message, image: MetadataImage) -> Left | Refused:
        """The permitted part of a request, or the response if nothing is permitted."""
        if isinstance(request, TOKEN_REQUESTS) and asker.is_token:
            return Refused(refuse(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
        if not self._authorizer.is_enabled:
            if isinstance(request, ACL_REQUESTS):
                return Refused(refuse(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER))
            return Left(request)
        kind, _, name = asker.principal.partition(":")
        caller = Caller(Principal(kind, name), asker.host, API_OF[type(request)].key)
        rights = _Rights(self._authorizer, caller, image)
        operation = CLUSTER_OPERATIONS.get(type(request))
        if operation is not None:
            if rights.may(operation):
                return Left(request)
            return Refused(refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        check = CHECKS.get(type(request))
        if check is None:
            return Refused(refuse(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        return await check(rights, asker, request)


async def _create_topics(
    rights: _Rights, _: Asker, request: topics_messages.CreateTopicsRequest
) -> Left | Refused:
    """CREATE on the cluster or the topic; its configuration is for those who may describe it."""
    names = dict.fromkeys(topic.name for topic in request.topics)
    may_all = rights.may(Operation.CREATE, logs_denial=False)
    creatable = set(names) if may_all else await rights.topics(Operation.CREATE, names)
    describable = await rights.topics(Operation.DESCRIBE_CONFIGS, creatable, logs_denial=False)
    left = copy(request)
    left.topics = [topic for topic in request.topics if topic.name in creatable]
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def complete(
        response: topics_messages.CreateTopicsResponse,
    ) -> topics_messages.CreateTopicsResponse:
        for topic in response.topics:
            if topic.error_code == ErrorCode.NONE and topic.name not in describable:
                topic.topic_config_error_code = code
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        response.topics += [
            topics_messages.CreatableTopicResult(
                name=name, error_code=code, error_message="Authorization failed."
            )
            for name in names
            if name not in creatable
        ]
        return response

    return Left(left, complete)


async def _delete_topics(
    rights: _Rights, _: Asker, request: topics_messages.DeleteTopicsRequest
) -> Left | Refused:
    """DELETE on the cluster or the topic. Names of topics are for those who may describe them."""
    if rights.may(Operation.DELETE, logs_denial=False):
        return Left(request)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    by_id = rights.image.topics.by_id
    refused: list[topics_messages.DeletableTopicResult] = []

    def keep(name: str | None, topic_id: Uuid = ZERO_UUID) -> bool:
        known = by_id.get(topic_id) if name is None else None
        current_name = name if known is None else known.name
        if current_name is None:
            return True  # an id of no topic
        describable = rights.may(Operation.DESCRIBE, ResourceType.TOPIC, current_name)
        deletable = rights.may(Operation.DELETE, ResourceType.TOPIC, current_name)
        if name is None:
            is_left = deletable
        else:  # that there is no such topic is for those to know who may describe it
            is_left = describable and (deletable or name not in rights.image.topics.by_name)
        if not is_left:
            shown = name if name is not None else (current_name if describable else None)
            refused.append(
                topics_messages.DeletableTopicResult(
                    name=shown, topic_id=topic_id, error_code=code, error_message=code.message
                )
            )
        return is_left

    left = copy(request)
    left.topic_names = [name async for name in in_turns(request.topic_names) if keep(name)]
    left.topics = [
        topic async for topic in in_turns(request.topics) if keep(topic.name, topic.topic_id)
    ]

    def complete(
        response: topics_messages.DeleteTopicsResponse,
    ) -> topics_messages.DeleteTopicsResponse:
        # In an order that does not reveal which users exist.
        response.responses = sorted(
            response.responses + refused, key=lambda result: (result.name or "", result.topic_id)
        )
        return response

    return Left(left, complete)


async def _create_partitions(
    rights: _Rights, _: Asker, request: topics_messages.CreatePartitionsRequest
) -> Left | Refused:
    """ALTER on the topic."""
    names = dict.fromkeys(topic.name for topic in request.topics)
    alterable = await rights.topics(Operation.ALTER, names)
    left = copy(request)
    left.topics = [topic for topic in request.topics if topic.name in alterable]

    def complete(
        response: topics_messages.CreatePartitionsResponse,
    ) -> topics_messages.CreatePartitionsResponse:
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response.results += [
            topics_messages.CreatePartitionsTopicResult(
                name=name, error_code=code, error_message=code.message
            )
            for name in names
            if name not in alterable
        ]
        return response

    return Left(left, complete)


async def _alter_configs(rights: _Rights, _: Asker, request: Any) -> Left | Refused:
    """ALTER_CONFIGS on the topic or group, or on the cluster."""
    refused: dict[tuple[int, str], ErrorCode] = {}
    async for resource in in_turns(request.resources):
        key = (resource.resource_type, resource.resource_name)
        code = _config_error(rights, *key)
        if code is not None:
            refused[key] = code
    left = copy(request)
    left.resources = [
        resource
        for resource in request.resources
        if (resource.resource_type, resource.resource_name) not in refused
    ]

    def complete(response: Any) -> Any:
        response.responses += [
            configs.AlterConfigsResourceResponse(
                error_code=code, error_message=code.message, resource_type=kind, resource_name=name
            )
            for (kind, name), code in refused.items()
        ]
        return response

    return Left(left, complete)


_OF_CLUSTER: Final = ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED
CONFIG_OWNERS: Final[dict[int, tuple[ResourceType, ErrorCode]]] = {
    ConfigResourceType.TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ConfigResourceType.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ConfigResourceType.BROKER: _OF_CLUSTER,
    ConfigResourceType.BROKER_LOGGER: _OF_CLUSTER,
    ConfigResourceType.CLIENT_METRICS: _OF_CLUSTER,
}
"""The authorizer's resource type of a configuration, and the error for clients without rights to
it.
"""


def _config_error(rights: _Rights, resource_type: int, name: str) -> ErrorCode | None:
    """Why a resource's configuration may not be changed; the decision refuses unknown types."""
    owner = CONFIG_OWNERS.get(resource_type)
    if owner is None:
        return None
    kind, code = owner
    is_logger = resource_type == ConfigResourceType.BROKER_LOGGER
    operation = Operation.CLUSTER_ACTION if is_logger else Operation.ALTER_CONFIGS
    is_cluster = kind is ResourceType.CLUSTER
    return None if rights.may(operation, kind, CLUSTER_NAME if is_cluster else name) else code


async def _create_token(
    rights: _Rights, asker: Asker, request: credentials.CreateDelegationTokenRequest
) -> Left | Refused:
    """A token for oneself is free; CREATE_TOKENS on the owner, if that is another user."""
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
        if owner != asker.principal and not rights.may(
            Operation.CREATE_TOKENS, ResourceType.USER, owner
        ):
            code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
            return Refused(refuse(request, code))
    return Left(request)


async def _own_tokens(_: _Rights, __: Asker, request: Message) -> Left | Refused:
    """The decision looks at whose token it is."""
    return Left(request)


NO_AUTHORIZER: Final = "No Authorizer is configured."
ACL_REQUESTS: Final = (acls.CreateAclsRequest, acls.DeleteAclsRequest)
TOKEN_REQUESTS: Final = (
    credentials.CreateDelegationTokenRequest,
    credentials.RenewDelegationTokenRequest,
    credentials.ExpireDelegationTokenRequest,
)
"""Clients that logged in with a token cannot get another."""

CLUSTER_OPERATIONS: Final[dict[type, Operation]] = {
    apis.ADD_RAFT_VOTER.request: Operation.ALTER,
    apis.ALLOCATE_PRODUCER_IDS.request: Operation.CLUSTER_ACTION,
    apis.ALTER_CLIENT_QUOTAS.request: Operation.ALTER_CONFIGS,
    apis.ALTER_PARTITION.request: Operation.CLUSTER_ACTION,
    apis.ALTER_PARTITION_REASSIGNMENTS.request: Operation.ALTER,
    apis.ALTER_USER_SCRAM_CREDENTIALS.request: Operation.ALTER,
    apis.ASSIGN_REPLICAS_TO_DIRS.request: Operation.CLUSTER_ACTION,
    apis.BROKER_HEARTBEAT.request: Operation.CLUSTER_ACTION,
    apis.BROKER_REGISTRATION.request: Operation.CLUSTER_ACTION,
    apis.CONTROLLER_REGISTRATION.request: Operation.CLUSTER_ACTION,
    apis.CREATE_ACLS.request: Operation.ALTER,
    apis.DELETE_ACLS.request: Operation.ALTER,
    apis.DESCRIBE_QUORUM.request: Operation.DESCRIBE,
    apis.ELECT_LEADERS.request: Operation.ALTER,
    apis.LIST_PARTITION_REASSIGNMENTS.request: Operation.DESCRIBE,
    apis.REMOVE_RAFT_VOTER.request: Operation.ALTER,
    apis.UNREGISTER_BROKER.request: Operation.ALTER,
    apis.UPDATE_FEATURES.request: Operation.ALTER,
    apis.UPDATE_RAFT_VOTER.request: Operation.CLUSTER_ACTION,
}
"""Requests that need one right, on the cluster."""

CHECKS: Final[dict[type, Callable[[_Rights, Asker, Any], Awaitable[Left | Refused]]]] = {
    apis.ALTER_CONFIGS.request: _alter_configs,
    apis.CREATE_DELEGATION_TOKEN.request: _create_token,
    apis.CREATE_PARTITIONS.request: _create_partitions,
    apis.CREATE_TOPICS.request: _create_topics,
    apis.DELETE_TOPICS.request: _delete_topics,
    apis.EXPIRE_DELEGATION_TOKEN.request: _own_tokens,
    apis.INCREMENTAL_ALTER_CONFIGS.request: _alter_configs,
    apis.RENEW_DELEGATION_TOKEN.request: _own_tokens,
}
"""All other requests, and the rights that each part of them needs."""
