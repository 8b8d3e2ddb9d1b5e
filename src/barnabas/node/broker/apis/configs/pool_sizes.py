"""Limits on resizing a thread pool while a broker runs.

Not beyond double what it is, nor below half. Of Kafka's pools there is only one here, that of
replica fetchers; the others' keys are held to the rule all the same, so that what is set can be
taken along to a Kafka. The broker that is asked looks at its own sizes; a controller that is asked
directly does not know them. Source: Kafka's DynamicThreadPool (KIP-226).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from barnabas.base.config.errors import ConfigError
from barnabas.node.broker.services import BrokerServices
from barnabas.node.metadata.controller.config_changes import changes_of
from barnabas.node.metadata.controller.decision import Failure
from barnabas.node.metadata.image import ConfigResourceType
from barnabas.protocol.messages import configs as configs_messages

POOLS = (
    "background.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)

Resource = configs_messages.AlterConfigsResource | configs_messages.AlterConfigsAlterConfigsResource


def refused_pool_sizes(
    services: BrokerServices, resources: Sequence[Resource]
) -> dict[tuple[int, str], str]:
    """By type and name of a resource: why this broker's pools cannot become as large as it says.

    What is named twice is left to the controller, which takes neither.
    """
    times_named = Counter((each.resource_type, each.resource_name) for each in resources)
    refused = {}
    for resource in resources:
        key = (resource.resource_type, resource.resource_name)
        if resource.resource_type == ConfigResourceType.BROKER and times_named[key] == 1:
            reason = _check(services, resource)
            if reason is not None:
                refused[key] = reason
    return refused


def _check(services: BrokerServices, resource: Resource) -> str | None:
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
