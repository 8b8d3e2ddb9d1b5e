"""Resources that have configuration: rights, what one broker checks itself, and its loggers.

- The configuration of one broker changes through that broker. Only it knows its own file, so it
  checks that it could take what is set. A controller that is asked directly cannot, and lets
  directories out of `cordoned.log.dirs` but none in (KIP-1066).
  Source: Kafka's ConfigAdminManager, DynamicBrokerConfig and ConfigurationControlManager.
- The node's loggers are configuration (KIP-412): Python's, under Kafka's names for levels.
"""

import logging
from collections.abc import Mapping, Sequence

from barnabas.base.config.definitions import Scope
from barnabas.base.errors import ConfigError
from barnabas.node.broker.authorization import HasAuthorizer, may
from barnabas.node.broker.context import RequestContext
from barnabas.node.broker.services import BrokerServices
from barnabas.node.config.node_values import CORDONED_KEY
from barnabas.node.config.tls_changes import check_tls_change
from barnabas.node.metadata.controller.config_changes import changes_of
from barnabas.node.metadata.controller.config_rules import config_key
from barnabas.node.metadata.controller.decision import Failure
from barnabas.node.metadata.image import ConfigResourceType, MetadataImage
from barnabas.node.security.controller_checks import CONFIG_OWNERS
from barnabas.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages import configs as configs_messages
from barnabas.protocol.messages.configs import AlterableConfig

AnyResource = (
    configs_messages.AlterConfigsResource | configs_messages.AlterConfigsAlterConfigsResource
)


def check_broker_resource(
    services: BrokerServices,
    resource: AnyResource,
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
    resource: AnyResource,
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
    resource: AnyResource,
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


SET, DELETE = 0, 1
ROOT = "root"


LEVELS = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


Outcome = tuple[ErrorCode, str | None]


def logger_levels() -> dict[str, str]:
    """The level that holds for each logger, the root's included."""
    levels = {ROOT: _name_of(logging.getLogger().level)}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger):
            levels[name] = _name_of(logger.getEffectiveLevel())
    return levels


def alter_loggers(configs: Sequence[AlterableConfig], *, validate_only: bool) -> Outcome:
    """Set levels, or let loggers follow those above them again; all or none."""
    known = logger_levels()
    for config in configs:
        outcome = _check_logger(config, known)
        if outcome is not None:
            return outcome
    if not validate_only:
        for config in configs:
            level = LEVELS[config.value or ""] if config.config_operation == SET else 0
            logging.getLogger(None if config.name == ROOT else config.name).setLevel(level)
    return ErrorCode.NONE, None


def _check_logger(config: AlterableConfig, known: dict[str, str]) -> Outcome | None:
    if config.config_operation not in (SET, DELETE):
        return (
            ErrorCode.INVALID_REQUEST,
            "Loggers can be set and deleted only; they are not lists.",
        )
    if config.name not in known:
        return ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!"
    if config.config_operation == SET and config.value not in LEVELS:
        valid = ", ".join(sorted(LEVELS))
        message = f"{config.value} is not a log level for {config.name}. Valid are {valid}"
        return ErrorCode.INVALID_CONFIG, message
    if config.config_operation == DELETE and config.name == ROOT:
        return (
            ErrorCode.INVALID_REQUEST,
            f"Removing the log level of the {ROOT} logger is not allowed",
        )
    return None


def _name_of(level: int) -> str:
    """The nearest of Kafka's levels that lets no more through."""
    for name, number in LEVELS.items():
        if level <= number:
            return name
    return "FATAL"


def refuse(
    services: HasAuthorizer,
    context: RequestContext,
    operation: Operation,
    resource_type: int,
    name: str,
    *,
    is_lookup: bool = False,
) -> ErrorCode:
    """The error if the sender may not do this with a configuration; NONE if it may.

    A type that does not exist is left to the handler. `is_lookup`: the controller decides, and
    has it in its audit log.
    """
    if not services.authorizer.is_enabled or resource_type not in CONFIG_OWNERS:
        return ErrorCode.NONE
    owner, error = CONFIG_OWNERS[resource_type]
    asked = CLUSTER_NAME if owner is ResourceType.CLUSTER else name
    logs = not is_lookup
    is_allowed = may(services, context, operation, owner, asked, logs_denial=logs, logs_grant=logs)
    return ErrorCode.NONE if is_allowed else error
