"""Configuration resources that belong to one broker: the request must have come to that one.

It checks that it could take what is set, as only it knows its own file. A controller that is asked
directly cannot, and lets directories out of `cordoned.log.dirs` but none in (KIP-1066).
Source: Kafka's ConfigAdminManager, DynamicBrokerConfig and ConfigurationControlManager.
"""

from collections.abc import Mapping

from barnabas.base.config.definitions import Scope
from barnabas.base.config.errors import ConfigError
from barnabas.node.broker.services import BrokerServices
from barnabas.node.config.tls_changes import check_tls_change
from barnabas.node.config.validation import CORDONED_KEY
from barnabas.node.metadata.controller.config_changes import changes_of
from barnabas.node.metadata.controller.config_rules import config_key
from barnabas.node.metadata.controller.decision import Failure
from barnabas.node.metadata.image import ConfigResourceType, MetadataImage
from barnabas.protocol.messages import configs as configs_messages


def check_broker_resource(
    services: BrokerServices,
    resource: configs_messages.AlterConfigsResource
    | configs_messages.AlterConfigsAlterConfigsResource,
) -> str | None:
    """Why this node does not answer for the resource or could not take it, None if neither."""
    name = resource.resource_name
    if resource.resource_type != ConfigResourceType.BROKER or not name:
        return None
    return check_node_id(services.node_id, name) or _check_values(services, resource)


def check_node_id(own_id: int, name: str) -> str | None:
    """Why `name` is not this node's id, or None if it is."""
    try:
        node_id = int(name)
    except ValueError:
        return f"Node id must be an integer, but it is: {name}"
    if node_id != own_id:
        return f"Unexpected broker id, expected {own_id}, but received {name}"
    return None


def check_cordoned_by_controller(
    image: MetadataImage,
    resource: configs_messages.AlterConfigsResource
    | configs_messages.AlterConfigsAlterConfigsResource,
) -> str | None:
    """Why a controller may not change a broker's `cordoned.log.dirs` like this; None if it may."""
    if resource.resource_type != ConfigResourceType.BROKER:
        return None
    current = image.configs.for_resource(ConfigResourceType.BROKER, resource.resource_name)
    changes = changes_of(current, resource)
    if isinstance(changes, Failure) or _entries(changes) <= _entries(current):
        return None
    return (
        f"When updating {CORDONED_KEY} via controllers, the new value must be a subset of the "
        "current configuration value."
    )


def _entries(values: Mapping[str, str | None]) -> set[str]:
    text = values.get(CORDONED_KEY) or ""
    return {entry.strip() for entry in text.split(",") if entry.strip()}


def _check_values(
    services: BrokerServices,
    resource: configs_messages.AlterConfigsResource
    | configs_messages.AlterConfigsAlterConfigsResource,
) -> str | None:
    """Why this node's configuration cannot become so. The controller finds all that is general."""
    effective, configs = services.metadata.effective, services.image.configs
    current = effective.dynamic_broker(configs)
    changes = changes_of(current, resource)
    if isinstance(changes, Failure):
        return None
    for name in changes:
        key = config_key(ConfigResourceType.BROKER, name)
        if key is None or key.scope is Scope.READ_ONLY:
            return None
    values = {**effective.dynamic_default(configs), **current, **changes}
    try:
        changed = effective.static.with_dynamic(
            {name: value for name, value in values.items() if value is not None}
        )
        check_tls_change(effective.broker(configs), changed)
    except ConfigError as error:
        return str(error)
    return None
