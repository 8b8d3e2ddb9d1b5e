"""Resources whose configuration is altered: some are decided here, the others by the controller.

AlterConfigs and IncrementalAlterConfigs have each resource stand for itself. A resource that the
sender may not alter is left to the controller, which refuses it: what this broker would have
against it may tell of its configuration.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from barnabas.node.broker.apis.configs.broker_resources import check_broker_resource
from barnabas.node.broker.apis.configs.pool_sizes import refused_pool_sizes
from barnabas.node.broker.apis.configs.rights import refuse
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.protocol.acls import Operation
from barnabas.protocol.messages import configs

Resource = TypeVar(
    "Resource", configs.AlterConfigsAlterConfigsResource, configs.AlterConfigsResource
)
Answer = TypeVar(
    "Answer", configs.AlterConfigsResourceResponse, configs.AlterConfigsResourceResponse
)
Key = tuple[int, str]
"""Type and name of a resource."""


def decide_here(
    services: BrokerServices,
    context: RequestContext,
    resources: Sequence[Resource],
    decide: Callable[[Resource, str | None], Answer | None],
) -> tuple[dict[Key, Answer], list[Resource]]:
    """The answers of this broker, and the resources that are left to the controller.

    `decide` is given what this broker has against each resource.
    """
    answers: dict[Key, Answer] = {}
    left = []
    refused_sizes = refused_pool_sizes(services, resources)
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        reason = None
        if not refuse(services, context, Operation.ALTER_CONFIGS, *key, is_lookup=True):
            reason = check_broker_resource(services, resource) or refused_sizes.get(key)
        answer = decide(resource, reason)
        if answer is None:
            left.append(resource)
        else:
            answers[key] = answer
    return answers, left


def in_order(
    resources: Sequence[Resource], here: dict[Key, Answer], controllers: Iterable[Answer]
) -> list[Answer]:
    """All answers in the order of the resources, each once."""
    answers = {**here}
    for answer in controllers:
        answers[answer.resource_type, answer.resource_name] = answer
    keys = ((resource.resource_type, resource.resource_name) for resource in resources)
    return [answers[key] for key in dict.fromkeys(keys)]
