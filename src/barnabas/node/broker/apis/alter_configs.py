"""Changing configuration. Some resources are decided here, the others by the controller.

A thread pool may be resized to at most double and at least half its size while a broker runs. Of
Kafka's pools there is only one here, that of replica fetchers; the keys of the others follow the
same rule, so that settings can move to a Kafka. The broker compares with its own sizes; a
controller that is asked directly does not know them. Source: Kafka's DynamicThreadPool (KIP-226).

AlterConfigs and IncrementalAlterConfigs treat each resource separately. A resource that the
sender may not alter is left to the controller, which refuses it: an objection of this broker's
could reveal its configuration.

AlterConfigs (key 33), versions 0-2: KIP-133, deprecated by KIP-339. Decided by the controller.

Keys that a request does not name are reset. A broker's own configuration can only be changed
through that broker, which checks that it could take it.

IncrementalAlterConfigs (key 44), versions 0-1: KIP-339, 412, 714, 848.

Configurations are decided by the controller, which checks that the sender may alter them. A
broker's own can only be changed through that broker; its loggers are not configuration of the
cluster, and are set here and now, by those who may ALTER_CONFIGS of the cluster.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from barnabas.base.errors import ConfigError
from barnabas.node.broker.apis.config_resources import (
    AnyResource,
    alter_loggers,
    check_broker_resource,
    check_node_id,
    refuse,
)
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.controller.requests import ask_controller
from barnabas.node.broker.in_parts import Each, decided_in_parts
from barnabas.node.broker.services import BrokerServices
from barnabas.node.loop.pauses import in_turns
from barnabas.node.metadata.controller.config_changes import changes_of
from barnabas.node.metadata.controller.decision import Failure
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.acls import Operation
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
)

POOLS = (
    "background.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)


def refused_pool_sizes(
    services: BrokerServices, resources: Sequence[AnyResource]
) -> dict[tuple[int, str], str]:
    """By type and name of a resource: why this broker's pools cannot become as large as it says.

    Duplicate keys are left to the controller, which refuses both.
    """
    times_named = Counter((each.resource_type, each.resource_name) for each in resources)
    refused = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        if resource.resource_type == ConfigResourceType.BROKER and times_named[key] == 1:
            reason = _check_pool_sizes(services, resource)
            if reason is not None:
                refused[key] = reason
    return refused


def _check_pool_sizes(services: BrokerServices, resource: AnyResource) -> str | None:
    effective, configs = services.metadata.effective, services.image.configs
    default: Mapping[str, str | None] = effective.dynamic_default(configs)
    own: Mapping[str, str | None] = effective.dynamic_broker(configs)
    changes = changes_of(
        configs.for_resource(ConfigResourceType.BROKER, resource.resource_name), resource
    )
    if isinstance(changes, Failure):
        return None  # the controller says what is wrong
    if resource.resource_name:
        own = {**own, **changes}
    else:
        default = {**default, **changes}
    current = effective.broker(configs)
    for name in POOLS:
        config = effective.static
        text = own.get(name) or default.get(name)
        if text is not None:
            try:
                config = config.with_dynamic({name: text})
            except ConfigError:
                continue  # it says that, too
        size = config.get_int(name)
        reason = _check_size(size, current.get_int(name))
        if reason is not None:
            return f"Dynamic thread count update validation failed for {name}={size}, {reason}"
    return None


def _check_size(size: int, current: int) -> str | None:
    if size < current // 2:
        return f"value should be at least half the current value {current}"
    if size > current * 2:
        return f"value should not be greater than double the current value {current}"
    return None


EACH_CHANGE = Each(
    "resources", "responses", lambda resource: (resource.resource_type, resource.resource_name)
)


async def handle_alter_configs(
    services: BrokerServices,
    context: RequestContext,
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
) -> Any:
    """Change the configuration of resources, each for itself; answers are in their order."""
    answers: dict[tuple[int, str], AlterConfigsResourceResponse] = {}
    left: list[Any] = []
    resources: Sequence[AnyResource] = request.resources
    refused_sizes = refused_pool_sizes(services, resources)
    async for resource in in_turns(resources):
        key = (resource.resource_type, resource.resource_name)
        reason = None
        if not refuse(services, context, Operation.ALTER_CONFIGS, *key, is_lookup=True):
            reason = check_broker_resource(services, resource) or refused_sizes.get(key)
        if resource.resource_type == ConfigResourceType.BROKER_LOGGER:
            if isinstance(resource, AlterConfigsResource):
                answers[key] = _alter_loggers(services, context, resource, request.validate_only)
                continue
            reason = f"Unknown resource type {resource.resource_type}"
        if reason is None:
            left.append(resource)
        else:
            answers[key] = _result(resource, ErrorCode.INVALID_REQUEST, reason)
    passed_on = type(request)(resources=left, validate_only=request.validate_only)
    response: Any = await decided_in_parts(
        EACH_CHANGE, passed_on, partial(ask_controller, services, context)
    )
    for answer in response.responses:
        answers[answer.resource_type, answer.resource_name] = answer
    keys = ((resource.resource_type, resource.resource_name) for resource in resources)
    response.responses = [answers[key] for key in dict.fromkeys(keys)]
    return response


def _alter_loggers(
    services: BrokerServices,
    context: RequestContext,
    resource: AlterConfigsResource,
    validate_only: bool,
) -> AlterConfigsResourceResponse:
    kind, name = resource.resource_type, resource.resource_name
    refused = refuse(services, context, Operation.ALTER_CONFIGS, kind, name)
    if refused:
        return _result(resource, refused, refused.message)
    reason = check_node_id(services.node_id, resource.resource_name)
    if reason is not None:
        return _result(resource, ErrorCode.INVALID_REQUEST, reason)
    code, message = alter_loggers(resource.configs, validate_only=validate_only)
    return _result(resource, code, message)


def _result(
    resource: AnyResource, code: ErrorCode, message: str | None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
