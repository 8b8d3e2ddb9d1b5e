"""Configuration as it holds now: the node's file, then what was set for all brokers, then for it.

Dynamic values are metadata (ConfigRecords), so what holds is a function of the image.
"""

import logging
from collections.abc import Mapping
from typing import Any

from barnabas.base.config.definitions import ConfigKey
from barnabas.base.errors import ConfigError
from barnabas.node.config.definitions import BROKER_KEYS
from barnabas.node.config.node_config import NodeConfig
from barnabas.node.config.topic import TOPIC_CONFIG_DEFS, topic_config_values
from barnabas.node.metadata.image import ConfigResourceType, ConfigsImage

telemetry = logging.getLogger(__name__)


class EffectiveConfig:
    """One node's configuration over time; remembers the last result.

    A dynamic value that cannot be used (another version wrote it) is passed over and said so:
    refusing to start would prevent the operator from changing it.
    """

    __slots__ = ("_broker", "_layers", "node_id", "static")

    def __init__(self, static: NodeConfig) -> None:
        self.static = static
        self.node_id = static.node_id
        self._broker = static
        self._layers: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})

    def dynamic_default(self, configs: ConfigsImage) -> Mapping[str, str]:
        """The values that are set for all brokers."""
        return configs.for_resource(ConfigResourceType.BROKER, "")

    def dynamic_broker(self, configs: ConfigsImage) -> Mapping[str, str]:
        """The values that are set for this broker."""
        return configs.for_resource(ConfigResourceType.BROKER, str(self.node_id))

    def broker(self, configs: ConfigsImage) -> NodeConfig:
        """The node's configuration with dynamic values over it."""
        layers = (self.dynamic_default(configs), self.dynamic_broker(configs))
        if layers != self._layers:
            self._layers = layers
            usable = {
                name: value
                for name, value in {**layers[0], **layers[1]}.items()
                if _is_usable(name, value)
            }
            try:
                self._broker = self.static.with_dynamic(usable) if usable else self.static
            except ConfigError as error:
                telemetry.error("the dynamic configuration cannot be used: %s", error)
                self._broker = self.static
        return self._broker

    def topic(self, configs: ConfigsImage, topic: str) -> dict[str, Any]:
        """Every topic key's typed value for `topic`."""
        return self.topic_with(configs, configs.for_resource(ConfigResourceType.TOPIC, topic))

    def topic_with(self, configs: ConfigsImage, overrides: Mapping[str, str]) -> dict[str, Any]:
        """Every topic key's typed value for a topic with these overrides."""
        usable = {
            name: value for name, value in overrides.items() if _is_usable_by_topic(name, value)
        }
        return topic_config_values(self.broker(configs), usable)


def _is_usable(name: str, value: str) -> bool:
    key = BROKER_KEYS.get(name)
    if key is None:
        return name.startswith("listener.name.")
    return _parses(key, value, "a dynamic broker")


def _is_usable_by_topic(name: str, value: str) -> bool:
    key = TOPIC_CONFIG_DEFS.get(name)
    return key is not None and _parses(key, value, "a topic")


def _parses(key: ConfigKey, value: str, whose: str) -> bool:
    try:
        key.parse(value)
    except ConfigError as error:
        telemetry.error("%s configuration cannot be used: %s", whose, error)
        return False
    return True
